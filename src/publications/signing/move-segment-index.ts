import { AppError } from '#errors/app-error.ts';
import type { OutputPositions } from './output-positions.ts';
import type { TopBox } from './top-boxes.ts';

/** `referenced_size` is 31 bits (ISO/IEC 14496-12 §8.16.3). */
const REFERENCED_SIZE_MAX = 0x7fff_ffff;
const REFERENCE_SIZE_BYTES = 12;

/**
 * A segment index whose distances and sizes span what was inserted or left out. Its anchor and the end of every
 * reference are boundaries in the source; the difference of their new positions is the new size.
 */
export function moveSegmentIndex(index: Buffer, box: TopBox, positions: OutputPositions, path: string): Uint8Array {
  const refuse = (problem: string): never => {
    throw new AppError('FRAGMENT_MALFORMED', { file: path, boxType: 'sidx', offset: box.offset, problem });
  };
  const bytes = Buffer.from(index);
  const body = box.headerSizeBytes;
  const isWide = bytes[body] !== 0;
  const firstOffsetAt = body + (isWide ? 20 : 16);
  const countAt = firstOffsetAt + (isWide ? 10 : 6);
  if (bytes.length < countAt + 2) refuse('it is cut short');
  const count = bytes.readUInt16BE(countAt);
  if (bytes.length < countAt + 2 + count * REFERENCE_SIZE_BYTES) refuse('it is cut short');

  const end = box.offset + box.sizeBytes;
  const firstOffset = isWide ? Number(bytes.readBigUInt64BE(firstOffsetAt)) : bytes.readUInt32BE(firstOffsetAt);
  if (!Number.isSafeInteger(end + firstOffset)) refuse('its first offset cannot be right');
  let boundary = end + firstOffset;
  let start = positions.ofBoundary(boundary);
  const movedFirst = start - (positions.ofBox(box) + box.sizeBytes);
  if (movedFirst < 0) refuse('its first offset cannot be right');
  if (isWide) bytes.writeBigUInt64BE(BigInt(movedFirst), firstOffsetAt);
  else bytes.writeUInt32BE(movedFirst, firstOffsetAt);

  for (let reference = 0; reference < count; reference += 1) {
    const at = countAt + 2 + reference * REFERENCE_SIZE_BYTES;
    const word = bytes.readUInt32BE(at);
    boundary += word & REFERENCED_SIZE_MAX;
    const next = positions.ofBoundary(boundary);
    if (next - start > REFERENCED_SIZE_MAX) refuse('a subsegment grows past what a segment index can say');
    bytes.writeUInt32BE(((word & 0x8000_0000) | (next - start)) >>> 0, at);
    start = next;
  }
  return bytes;
}
