import { endOfTerminated, fitsGrammar } from './frame-grammar.ts';
import { type FrameContext, frameHeaderSizeBytes, type Id3Frame, readFrames } from './frames.ts';
import { undoUnsynchronisation } from './unsynchronisation.ts';

/**
 * Readers of C2PA decode every frame of a tag, and give up the whole tag, with the manifest in it, at the first one
 * they cannot decode. What is said here about a frame errs on the side of "they cannot".
 */

/** How much of a frame's content is decoded; what is longer is judged by its start. */
const MAX_DECODED_SIZE_BYTES = 64 * 1024;
/** Chapters and tables of contents hold frames; ones inside those are taken for unreadable. */
const NESTING_IDS = ['CHAP', 'CTOC'];
/** A table to look up positions in MPEG audio: bit fields that nobody writes and readers disagree about. */
const LOOKUP_TABLE_IDS = ['MLLT', 'MLL'];

/** Why readers of C2PA cannot decode a frame. */
export type Unreadable = 'encryption' | 'grouping' | 'compression' | 'contents that do not fit its kind';

/** Why readers of C2PA cannot decode a frame, or null where they can. */
export async function unreadabilityOf(
  context: FrameContext,
  frame: Id3Frame,
  isNested = false,
): Promise<Unreadable | null> {
  if (frame.isEncrypted) return 'encryption';
  if (frame.isGrouped) return 'grouping';
  if (frame.isCompressed) return 'compression';
  return (await areContentsReadable(context, frame, isNested)) ? null : 'contents that do not fit its kind';
}

async function areContentsReadable(context: FrameContext, frame: Id3Frame, isNested: boolean): Promise<boolean> {
  const { body, version } = context;
  if (LOOKUP_TABLE_IDS.includes(frame.id)) return false;
  const dataLengthSizeBytes = frame.hasDataLength ? 4 : 0;
  const start = frame.position + frameHeaderSizeBytes(version) + dataLengthSizeBytes;
  const sizeBytes = frame.sizeBytes - dataLengthSizeBytes;
  if (sizeBytes < 0) return false;
  // A copy, since nested frames are read through the same window.
  const stored = Buffer.from(await body.read(start, Math.min(sizeBytes, MAX_DECODED_SIZE_BYTES)));
  if (NESTING_IDS.includes(frame.id)) {
    if (isNested || frame.isUnsynchronised) return false;
    const prefixSizeBytes = frame.id === 'CHAP' ? prefixOfChapter(stored) : prefixOfContents(stored);
    return prefixSizeBytes !== null && areNestedReadable(context, start + prefixSizeBytes, start + sizeBytes);
  }
  const content = frame.isUnsynchronised ? undoUnsynchronisation(stored) : stored;
  return fitsGrammar(frame.id, { content, isWhole: stored.length === sizeBytes, hasSeveralValues: version === 4 });
}

/** Size of an element id, two times and two offsets, 4 bytes each, or null (ID3v2 Chapter Frame Addendum, §3.1). */
function prefixOfChapter(content: Buffer): number | null {
  const elementIdEnd = endOfTerminated(content, 1);
  const end = (elementIdEnd ?? Number.POSITIVE_INFINITY) + 4 * 4;
  return end <= content.length ? end : null;
}

/** Size of an element id, flags, and a counted list of element ids, or null (ID3v2 Chapter Frame Addendum, §3.2). */
function prefixOfContents(content: Buffer): number | null {
  const elementIdEnd = endOfTerminated(content, 1);
  if (elementIdEnd === null || elementIdEnd + 2 > content.length) return null;
  let end = elementIdEnd + 2;
  for (let left = content.readUInt8(elementIdEnd + 1); left > 0; left--) {
    const size = endOfTerminated(content.subarray(end), 1);
    if (size === null) return null;
    end += size;
  }
  return end;
}

async function areNestedReadable(context: FrameContext, start: number, end: number): Promise<boolean> {
  const nested: FrameContext = { ...context, body: { ...context.body, sizeBytes: end } };
  const walk = await readFrames(nested, start);
  // Fewer bytes than a header has are not taken for a frame.
  if (walk.rest === 'junk' && end - walk.end >= frameHeaderSizeBytes(context.version)) return false;
  for (const frame of walk.frames) {
    const isRefused = frame.sizeBytes === 0 || frame.repairedHeader !== null;
    if (isRefused || (await unreadabilityOf(nested, frame, true)) !== null) return false;
  }
  return true;
}
