import { outputLengthOf, type Splice } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { endOfOffsets, MANIFEST_PREFIX, objectFrameId, shiftOffsets } from './frame-contents.ts';
import { endOfFrame, frameHeaderSizeBytes, type Id3Frame, makeFrameHeader, maxFrameSizeBytes } from './frames.ts';
import type { Id3Tag } from './tag.ts';
import { type Id3Version, MAX_SYNCSAFE, makeTagHeader, TAG_FLAGS } from './tag-structure.ts';

/** Version of a new tag: the one that the SDK writes. */
const NEW_TAG_VERSION = 4;
/** Padding that makes readers stop before bytes that are not a frame: as long as the longest frame header. */
const FRAMES_TERMINATOR = new Uint8Array(10);

/** Move of the audio, which starts at `audioOffset` in the source, in bytes; negative where tags become shorter. */
interface AudioMove {
  readonly audioOffset: number;
  readonly shiftBytes: number;
}

/** Parameters for rewriting the first tag of a file. */
interface Embedding {
  readonly manifestSizeBytes: number;
  readonly keepsFooter: boolean;
  readonly move: AudioMove;
}

/** Parts of a tag to write. */
interface TagParts {
  readonly version: Id3Version;
  readonly revision: number;
  readonly flags: number;
  /** Bytes between header and footer. */
  readonly body: readonly Splice[];
}

/**
 * Returns a tag with only a manifest; `name` is the file's, for errors. Throws `ID3_FRAME_TOO_LARGE`
 * or `ID3_TAG_TOO_LARGE`.
 */
export function makeTag(name: string, manifestSizeBytes: number): Splice[] {
  const body = manifestFrame(name, NEW_TAG_VERSION, manifestSizeBytes);
  return assembleTag(name, { version: NEW_TAG_VERSION, revision: 0, flags: 0, body });
}

/**
 * Returns a tag with a new manifest and without old ones. The frame of the manifest comes first, because some readers
 * fail in long tags; the other frames keep their order. Frames that C2PA readers cannot decode would hide the manifest,
 * so they move to a second tag. Throws `ID3_FRAME_TOO_LARGE` or `ID3_TAG_TOO_LARGE`.
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

/** Returns a tag behind the first one, without its manifests. Throws `ID3_TAG_TOO_LARGE`. */
export function stripTag(name: string, tag: Id3Tag, move: AudioMove): Splice[] {
  const isChanged = tag.manifestFrames.size > 0 || tag.storedOffsets.size > 0;
  if (isChanged) {
    const body = bodyOf(tag, [], () => true, move);
    return assembleTag(name, { ...tag, flags: tag.flags & keptFlags(tag, true), body });
  }
  return [{ kind: 'copy', offset: tag.offset, length: tag.endOffset - tag.offset, into: 'flat' }];
}

/** Returns the bytes between header and footer: extended header, new frame, kept frames and padding. */
function bodyOf(tag: Id3Tag, newFrame: readonly Splice[], isKept: FrameFilter, move: AudioMove): Splice[] {
  const { body, walk, extendedHeaderSizeBytes } = tag;
  return [
    ...body.splices(0, extendedHeaderSizeBytes),
    ...newFrame,
    ...keptFrames(tag, isKept, move),
    ...(walk.rest === 'junk' ? [insert(FRAMES_TERMINATOR)] : []),
    ...body.splices(walk.end, body.sizeBytes),
  ];
}

/**
 * Returns the flags to keep. Unsynchronisation was undone, or moved to the frames; readers refuse a tag
 * with unknown flags.
 */
function keptFlags({ version, extendedHeaderSizeBytes }: Id3Tag, keepsFooter: boolean): number {
  if (version === 2) return 0;
  const extendedHeader = extendedHeaderSizeBytes > 0 ? TAG_FLAGS.extendedHeader : 0;
  const footer = version === 4 && keepsFooter ? TAG_FLAGS.footer : 0;
  return TAG_FLAGS.experimental | extendedHeader | footer;
}

type FrameFilter = (frame: Id3Frame) => boolean;

/** Returns the kept frames, never manifests or empty ones, as few copies as possible. */
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

/** Range `[start, end)` of a tag's body that is replaced or removed. */
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

/**
 * Tells whether a frame lacks content (v2.4.0 structure, §4, requires a byte): C2PA readers discard a tag with
 * such a frame.
 */
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
