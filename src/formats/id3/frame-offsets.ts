import type { Splice } from '#bytes/splice-plan.ts';
import { frameHeaderSizeBytes, type Id3Frame } from './frames.ts';
import type { TagBody } from './tag-body.ts';
import type { Id3Version } from './tag-header.ts';

/** A chapter's element id is a short name; bound of the search for its end. */
const MAX_ELEMENT_ID_BYTES = 256;
const OFFSET_SIZE_BYTES = 4;
/** What a chapter says instead of an offset that it does not know (ID3v2 Chapter Frame Addendum, §3.1). */
const OFFSET_UNKNOWN = 0xffff_ffff;

/** Offsets from the start of the file that a frame stores one after the other, 4 bytes each. */
export interface StoredOffsets {
  /** Of the first one, from the start of the tag's body. */
  readonly position: number;
  readonly values: readonly number[];
}

/**
 * The file offsets that a frame stores: a chapter's start and end (`CHAP`) and the start of the indexed audio (`ASPI`;
 * v2.4.0 frames, §4.30). Null where it stores none, or in a form in which they cannot be changed in their place.
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

/** Where the stored offsets end in the tag's body. */
export function endOfOffsets({ position, values }: StoredOffsets): number {
  return position + values.length * OFFSET_SIZE_BYTES;
}

/**
 * The offsets as they are once the audio, which started at `audioOffset`, has moved. An offset before the audio means
 * nothing (some taggers write 0) and stays.
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
