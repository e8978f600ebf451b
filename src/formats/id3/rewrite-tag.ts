import { outputLengthOf, type Splice } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { MANIFEST_PREFIX, objectFrameId } from './frame-content.ts';
import { endOfOffsets, shiftOffsets } from './frame-offsets.ts';
import { endOfFrame, frameHeaderSizeBytes, type Id3Frame, makeFrameHeader, maxFrameSizeBytes } from './frames.ts';
import type { Id3Tag } from './tag.ts';
import { type Id3Version, makeTagHeader, TAG_FLAGS } from './tag-header.ts';
import { MAX_SYNCSAFE } from './unsynchronisation.ts';

/** Version of a tag made for a file that has none: the one the SDK writes. */
const NEW_TAG_VERSION = 4;
/** Zeros that make every reader stop before bytes that are no frame: as many as the longest frame header has. */
const STOP = new Uint8Array(10);

/** How far the audio moves, which stood at `audioOffset` in the source. In bytes; negative where tags get shorter. */
export interface AudioMove {
  readonly audioOffset: number;
  readonly shiftBytes: number;
}

/** How the first tag of a file is to be rewritten. */
export interface Embedding {
  readonly manifestSizeBytes: number;
  readonly keepsFooter: boolean;
  readonly move: AudioMove;
}

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
 * in long tags, and what follows it keeps its order. Frames that would hide the manifest from readers of C2PA, as they
 * cannot decode them, move to a tag of their own behind it.
 */
export function embedInTag(name: string, tag: Id3Tag, { manifestSizeBytes, keepsFooter, move }: Embedding): Splice[] {
  const newFrame = manifestFrame(name, tag.version, manifestSizeBytes);
  const isMoved = (frame: Id3Frame): boolean => tag.unreadableFrames.has(frame);
  const body = bodyOf(tag, newFrame, (frame) => !isMoved(frame), move);
  const first = assembleTag(name, { ...tag, flags: tag.flags & keptFlags(tag, keepsFooter), body });
  const movedFrames = keptFrames(tag, isMoved, move);
  if (movedFrames.length === 0) return first;
  return [...first, ...assembleTag(name, { ...tag, flags: 0, body: movedFrames })];
}

/** A tag that stands behind the first one, without the manifests it may hold. */
export function stripTag(name: string, tag: Id3Tag, move: AudioMove): Splice[] {
  const isChanged = tag.manifestFrames.size > 0 || tag.storedOffsets.size > 0;
  if (isChanged) {
    const body = bodyOf(tag, [], () => true, move);
    return assembleTag(name, { ...tag, flags: tag.flags & keptFlags(tag, true), body });
  }
  return [{ kind: 'copy', offset: tag.offset, length: tag.endOffset - tag.offset, into: 'flat' }];
}

/** Everything between header and footer: the extended header, a new frame, those to keep, and the padding. */
function bodyOf(tag: Id3Tag, newFrame: readonly Splice[], isKept: FrameFilter, move: AudioMove): Splice[] {
  const { body, walk, extendedHeaderSizeBytes } = tag;
  return [
    ...body.splices(0, extendedHeaderSizeBytes),
    ...newFrame,
    ...keptFrames(tag, isKept, move),
    ...(walk.rest === 'junk' ? [insert(STOP)] : []),
    ...body.splices(walk.end, body.sizeBytes),
  ];
}

/** Unsynchronisation of the tag has been undone or moved to the frames; unknown flags make readers refuse the tag. */
function keptFlags({ version, extendedHeaderSizeBytes }: Id3Tag, keepsFooter: boolean): number {
  if (version === 2) return 0;
  const extendedHeader = extendedHeaderSizeBytes > 0 ? TAG_FLAGS.extendedHeader : 0;
  const footer = version === 4 && keepsFooter ? TAG_FLAGS.footer : 0;
  return TAG_FLAGS.experimental | extendedHeader | footer;
}

type FrameFilter = (frame: Id3Frame) => boolean;

/** The frames to keep, never manifests and empty ones, in runs as long as can be. */
function keptFrames(tag: Id3Tag, isKept: FrameFilter, move: AudioMove): Splice[] {
  const splices: Splice[] = [];
  let runStart = tag.walk.frames[0]?.position ?? tag.walk.end;
  for (const frame of tag.walk.frames) {
    for (const edit of editsOf(tag, frame, isKept, move)) {
      splices.push(...tag.body.splices(runStart, edit.start), ...edit.replacement);
      runStart = edit.end;
    }
  }
  splices.push(...tag.body.splices(runStart, tag.walk.end));
  return splices;
}

/** A stretch `[start, end)` of a tag's body that is written differently, or not at all. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly replacement: readonly Splice[];
}

function editsOf(tag: Id3Tag, frame: Id3Frame, isKept: FrameFilter, move: AudioMove): Edit[] {
  const { version, manifestFrames, storedOffsets } = tag;
  if (manifestFrames.has(frame) || isEmpty(frame) || !isKept(frame)) {
    return [{ start: frame.position, end: endOfFrame(version, frame), replacement: [] }];
  }
  const edits: Edit[] = [];
  if (frame.repairedHeader !== null) {
    const end = frame.position + frameHeaderSizeBytes(version);
    edits.push({ start: frame.position, end, replacement: [insert(frame.repairedHeader)] });
  }
  const offsets = storedOffsets.get(frame);
  if (offsets !== undefined) {
    const replacement = [shiftOffsets(offsets, move.audioOffset, move.shiftBytes)];
    edits.push({ start: offsets.position, end: endOfOffsets(offsets), replacement });
  }
  return edits;
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
