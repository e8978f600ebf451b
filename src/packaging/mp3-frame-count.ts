import { type ByteSource, readRange } from '#bytes/byte-source.ts';

/** The header of an ID3v2 tag (ID3v2.4 structure, §3.1). */
const ID3_HEADER_BYTES = 10;
/** The first frame, which holds the count, is not larger. */
const FIRST_FRAME_BYTES = 1500;

/** Whether an MP3 file says how many frames it has, in a frame of its own at its start (Xing, LAME). */
export async function hasFrameCount(source: ByteSource, signal: AbortSignal): Promise<boolean> {
  const head = await readRange(source, 0, Math.min(source.sizeBytes, ID3_HEADER_BYTES), signal);
  const start = tagSizeOf(head);
  if (start >= source.sizeBytes) return false;
  const frame = await readRange(source, start, Math.min(source.sizeBytes - start, FIRST_FRAME_BYTES), signal);
  return frame.includes('Xing', 0, 'latin1') || frame.includes('Info', 0, 'latin1');
}

function tagSizeOf(head: Buffer): number {
  if (head.length < ID3_HEADER_BYTES || head.toString('latin1', 0, 3) !== 'ID3') return 0;
  return [6, 7, 8, 9].reduce((size, at) => size * 128 + ((head[at] as number) & 0x7f), 0) + ID3_HEADER_BYTES;
}
