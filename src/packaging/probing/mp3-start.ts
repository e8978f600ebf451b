import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { findFirstFrame, MAX_GARBAGE_BYTES } from '#formats/id3/mpeg-audio.ts';

/** The header of an ID3v2 tag (ID3v2.4 structure, §3.1). */
const ID3_HEADER_BYTES = 10;
/** The first frame, which holds the count, is not larger. */
const FIRST_FRAME_BYTES = 1500;
/** Frames that are looked at behind what may stand before them. */
const LOOKED_AT_BYTES = 64 * 1024;

/** How an MP3 file begins. */
export interface Mp3Start {
  /** Where its first frame stands, behind tags, silence or a torn frame. */
  readonly offset: number;
  /** Whether it says how many frames it has, in a frame of its own at its start (Xing, LAME). */
  readonly hasFrameCount: boolean;
}

/** Finds the first frame of an MP3 file; null where there is none. */
export async function readMp3Start(source: ByteSource, signal: AbortSignal): Promise<Mp3Start | null> {
  const tagBytes = await leadingTagBytes(source, signal);
  const length = Math.min(source.sizeBytes - tagBytes, MAX_GARBAGE_BYTES + LOOKED_AT_BYTES);
  if (length <= 0) return null;
  const bytes = await readRange(source, tagBytes, length, signal);
  const first = findFirstFrame(bytes);
  if (first === null) return null;
  const frame = bytes.subarray(first, first + FIRST_FRAME_BYTES);
  const hasFrameCount = frame.includes('Xing', 0, 'latin1') || frame.includes('Info', 0, 'latin1');
  return { offset: tagBytes + first, hasFrameCount };
}

/** How many bytes the tag at the start of a file takes; 0 where there is none. */
export async function leadingTagBytes(source: ByteSource, signal: AbortSignal): Promise<number> {
  const head = await readRange(source, 0, Math.min(source.sizeBytes, ID3_HEADER_BYTES), signal);
  if (head.length < ID3_HEADER_BYTES || head.toString('latin1', 0, 3) !== 'ID3') return 0;
  return [6, 7, 8, 9].reduce((size, at) => size * 128 + ((head[at] as number) & 0x7f), 0) + ID3_HEADER_BYTES;
}
