import type { Splice } from '#bytes/splice-plan.ts';
import { frameHeaderSizeBytes, type Id3Frame } from './frames.ts';
import { type Id3Version, type TagBody, undoUnsynchronisation, unsynchronisedOffset } from './tag-structure.ts';

/** Number of bytes read from a frame's content: they hold media type, file name and description, or the owner. */
const PEEK_SIZE_BYTES = 1024;
/** Size of the data length indicator that a v2.4 frame may have before its content. */
const DATA_LENGTH_SIZE_BYTES = 4;
/** Media type of a manifest store in ID3 (C2PA 2.2, annex A.3), and the one in earlier versions. */
const MANIFEST_MEDIA_TYPE = 'application/c2pa';
const MANIFEST_MEDIA_TYPES = [MANIFEST_MEDIA_TYPE, 'application/x-c2pa-manifest-store'];
/** Largest element id of a chapter that is searched for its terminator. */
const MAX_ELEMENT_ID_BYTES = 256;
const OFFSET_SIZE_BYTES = 4;
/** Value of a chapter's offset that is not known (ID3v2 Chapter Frame Addendum, §3.1). */
const OFFSET_UNKNOWN = 0xffff_ffff;

/** Consecutive file offsets in a frame, 4 bytes each. */
export interface StoredOffsets {
  /** Position of the first offset, counted from the start of the tag's body. */
  readonly position: number;
  readonly values: readonly number[];
}

/**
 * Returns the file offsets that a frame stores: a chapter's start and end (`CHAP`) and the start of the indexed audio
 * (`ASPI`; v2.4.0 frames, §4.30). Returns null where it stores none, or in a form that cannot be patched in place.
 */
export async function storedOffsetsOf(
  body: TagBody,
  version: Id3Version,
  frame: Id3Frame,
): Promise<StoredOffsets | null> {
  if (frame.id !== 'CHAP' && frame.id !== 'ASPI') return null;
  if (frame.isCompressed || frame.isEncrypted || frame.isUnsynchronised || frame.hasDataLength) return null;
  const contentStart = frame.position + frameHeaderSizeBytes(version);
  const peek = await body.read(contentStart, Math.min(frame.sizeBytes, MAX_ELEMENT_ID_BYTES));
  if (frame.id === 'ASPI') return offsetsAt(peek, contentStart, 0, 1);
  const elementIdEnd = peek.indexOf(0) + 1;
  const timesSizeBytes = 2 * 4;
  return elementIdEnd === 0 ? null : offsetsAt(peek, contentStart, elementIdEnd + timesSizeBytes, 2);
}

function offsetsAt(peek: Buffer, contentStart: number, start: number, count: number): StoredOffsets | null {
  if (start + count * OFFSET_SIZE_BYTES > peek.length) return null;
  const values = Array.from({ length: count }, (_, index) => peek.readUInt32BE(start + index * OFFSET_SIZE_BYTES));
  return { position: contentStart + start, values };
}

/** Returns the end of the stored offsets in the tag's body. */
export function endOfOffsets({ position, values }: StoredOffsets): number {
  return position + values.length * OFFSET_SIZE_BYTES;
}

/**
 * Returns the offsets after the audio, which started at `audioOffset`, has moved by `shiftBytes`. An offset before the
 * audio has no meaning (some taggers write 0) and stays.
 */
export function shiftOffsets({ values }: StoredOffsets, audioOffset: number, shiftBytes: number): Splice {
  const bytes = Buffer.alloc(values.length * OFFSET_SIZE_BYTES);
  for (const [index, value] of values.entries()) {
    const pointsAtAudio = value >= audioOffset && value !== OFFSET_UNKNOWN;
    const shifted = pointsAtAudio ? value + shiftBytes : value;
    bytes.writeUInt32BE(Math.min(shifted, OFFSET_UNKNOWN), index * OFFSET_SIZE_BYTES);
  }
  return { kind: 'insert', bytes, into: 'flat' };
}

/** Byte range of the source. */
export interface SourceRange {
  readonly offset: number;
  readonly length: number;
}

/** Fields of a GEOB frame before the manifest (v2.4.0 frames, §4.15), with text in ISO 8859-1. */
export const MANIFEST_PREFIX = Buffer.from(`\0${MANIFEST_MEDIA_TYPE}\0c2pa\0c2pa manifest store\0`, 'latin1');

/** Returns the frame id of a general encapsulated object. */
export function objectFrameId(version: Id3Version): string {
  return version === 2 ? 'GEO' : 'GEOB';
}

/** Returns the source range of a frame's manifest store, or null where the frame holds something else. */
export async function manifestOf(body: TagBody, version: Id3Version, frame: Id3Frame): Promise<SourceRange | null> {
  if (frame.id !== objectFrameId(version)) return null;
  const peek = await peekInto(body, version, frame);
  const encoding = peek.bytes[0];
  const mediaTypeEnd = peek.bytes.indexOf(0, 1);
  if (encoding === undefined || mediaTypeEnd === -1) return null;
  if (!MANIFEST_MEDIA_TYPES.includes(peek.bytes.toString('latin1', 1, mediaTypeEnd))) return null;
  const fileNameEnd = endOfText(peek.bytes, mediaTypeEnd + 1, encoding);
  const descriptionEnd = endOfText(peek.bytes, fileNameEnd, encoding);
  return peek.rangeFrom(descriptionEnd);
}

/** Returns the source range of a frame's XMP packet (XMP specification, part 3, §1.1.2), or null. */
export async function xmpOf(body: TagBody, version: Id3Version, frame: Id3Frame): Promise<SourceRange | null> {
  if (frame.id !== 'PRIV') return null;
  const peek = await peekInto(body, version, frame);
  return peek.bytes.toString('latin1', 0, 4) === 'XMP\0' ? peek.rangeFrom(4) : null;
}

/** First bytes of a frame's content, with a mapping from positions in them to ranges of the source. */
interface Peek {
  readonly bytes: Buffer;
  rangeFrom(position: number): SourceRange;
}

async function peekInto(body: TagBody, version: Id3Version, frame: Id3Frame): Promise<Peek> {
  const headerEnd = frame.position + frameHeaderSizeBytes(version);
  const frameEnd = headerEnd + frame.sizeBytes;
  const start = Math.min(headerEnd + (frame.hasDataLength ? DATA_LENGTH_SIZE_BYTES : 0), frameEnd);
  const stored = Buffer.from(await body.read(start, Math.min(PEEK_SIZE_BYTES, frameEnd - start)));
  const rangeFrom = (storedPosition: number): SourceRange => {
    const offset = body.sourceOffset(Math.min(start + storedPosition, frameEnd));
    return { offset, length: body.sourceOffset(frameEnd) - offset };
  };
  if (!frame.isUnsynchronised) return { bytes: stored, rangeFrom };
  return {
    bytes: undoUnsynchronisation(stored),
    rangeFrom: (position) => rangeFrom(unsynchronisedOffset(stored, position)),
  };
}

/** Returns the position behind the terminator of a text. UTF-16 (encodings 1 and 2) ends with two zero bytes. */
function endOfText(bytes: Buffer, start: number, encoding: number): number {
  const width = encoding === 1 || encoding === 2 ? 2 : 1;
  for (let position = start; position + width <= bytes.length; position += width) {
    if (bytes.readUIntBE(position, width) === 0) return position + width;
  }
  return bytes.length;
}
