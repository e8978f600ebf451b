import { outputLengthOf, type Splice } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { MANIFEST_PREFIX, objectFrameId } from './frame-content.ts';
import { endOfFrame, frameHeaderSizeBytes, type Id3Frame, makeFrameHeader, maxFrameSizeBytes } from './frames.ts';
import type { Id3Tag } from './tag.ts';
import { type Id3Version, makeTagHeader, TAG_FLAGS } from './tag-header.ts';
import { MAX_SYNCSAFE } from './unsynchronisation.ts';

/** Version of a tag made for a file that has none: the one the SDK writes. */
const NEW_TAG_VERSION = 4;
/** Zeros that make every reader stop before bytes that are no frame: as many as the longest frame header has. */
const STOP = new Uint8Array(10);

/** What to write as a tag. */
interface TagParts {
  readonly version: Id3Version;
  readonly revision: number;
  readonly flags: number;
  /** Everything between header and footer. */
  readonly body: readonly Splice[];
}

/** A tag that holds nothing but a manifest. `name` is the file's, for errors. */
export function makeTag(name: string, manifestSizeBytes: number): Splice[] {
  const body = manifestFrame(name, NEW_TAG_VERSION, manifestSizeBytes);
  return assembleTag(name, { version: NEW_TAG_VERSION, revision: 0, flags: 0, body });
}

/**
 * A tag with a new manifest and without the old ones. The manifest's frame comes first: some readers lose the thread
 * in long tags, and what follows it keeps its order.
 */
export function embedInTag(name: string, tag: Id3Tag, manifestSizeBytes: number, keepsFooter: boolean): Splice[] {
  return rewriteTag(name, tag, manifestFrame(name, tag.version, manifestSizeBytes), keepsFooter);
}

/** A tag that stands behind the first one, without the manifests it may hold. */
export function stripTag(name: string, tag: Id3Tag): Splice[] {
  if (tag.manifestFrames.size > 0) return rewriteTag(name, tag, [], true);
  return [{ kind: 'copy', offset: tag.offset, length: tag.endOffset - tag.offset, into: 'flat' }];
}

function rewriteTag(name: string, tag: Id3Tag, newFrame: readonly Splice[], keepsFooter: boolean): Splice[] {
  const { version, revision, body, walk, extendedHeaderSizeBytes } = tag;
  return assembleTag(name, {
    version,
    revision,
    flags: tag.flags & keptFlags(tag, keepsFooter),
    body: [
      ...body.splices(0, extendedHeaderSizeBytes),
      ...newFrame,
      ...keptFrames(tag),
      ...(walk.rest === 'junk' ? [insert(STOP)] : []),
      ...body.splices(walk.end, body.sizeBytes),
    ],
  });
}

/** Unsynchronisation of the tag has been undone or moved to the frames; unknown flags make readers refuse the tag. */
function keptFlags({ version, extendedHeaderSizeBytes }: Id3Tag, keepsFooter: boolean): number {
  if (version === 2) return 0;
  const extendedHeader = extendedHeaderSizeBytes > 0 ? TAG_FLAGS.extendedHeader : 0;
  const footer = version === 4 && keepsFooter ? TAG_FLAGS.footer : 0;
  return TAG_FLAGS.experimental | extendedHeader | footer;
}

/** Every frame but manifests and empty ones, in runs as long as can be. */
function keptFrames(tag: Id3Tag): Splice[] {
  const { version, body, walk, manifestFrames } = tag;
  const splices: Splice[] = [];
  let runStart = walk.frames[0]?.position ?? walk.end;
  for (const frame of walk.frames) {
    const isDropped = manifestFrames.has(frame) || isEmpty(frame);
    if (!isDropped && frame.repairedHeader === null) continue;
    splices.push(...body.splices(runStart, frame.position));
    if (!isDropped && frame.repairedHeader !== null) splices.push(insert(frame.repairedHeader));
    runStart = isDropped ? endOfFrame(version, frame) : frame.position + frameHeaderSizeBytes(version);
  }
  splices.push(...body.splices(runStart, walk.end));
  return splices;
}

/** A frame must hold at least one byte (v2.4.0 structure, §4); readers of C2PA give the whole tag up at an empty one. */
function isEmpty(frame: Id3Frame): boolean {
  return frame.sizeBytes === 0;
}

function manifestFrame(name: string, version: Id3Version, manifestSizeBytes: number): Splice[] {
  const sizeBytes = MANIFEST_PREFIX.length + manifestSizeBytes;
  const maxSizeBytes = maxFrameSizeBytes(version);
  if (sizeBytes > maxSizeBytes) throw new AppError('ID3_FRAME_TOO_LARGE', { name, sizeBytes, maxSizeBytes, version });
  const header = makeFrameHeader(version, objectFrameId(version), sizeBytes);
  return [insert(Buffer.concat([header, MANIFEST_PREFIX])), { kind: 'hole', length: manifestSizeBytes }];
}

function assembleTag(name: string, { version, revision, flags, body }: TagParts): Splice[] {
  let bodySizeBytes = 0;
  for (const splice of body) bodySizeBytes += outputLengthOf(splice);
  if (bodySizeBytes > MAX_SYNCSAFE) {
    throw new AppError('ID3_TAG_TOO_LARGE', { name, sizeBytes: bodySizeBytes, maxSizeBytes: MAX_SYNCSAFE });
  }
  const header = { version, revision, flags, bodySizeBytes };
  const hasFooter = (flags & TAG_FLAGS.footer) !== 0;
  return [insert(makeTagHeader('ID3', header)), ...body, ...(hasFooter ? [insert(makeTagHeader('3DI', header))] : [])];
}

function insert(bytes: Uint8Array): Splice {
  return { kind: 'insert', bytes, into: 'flat' };
}
