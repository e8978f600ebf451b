import type { ByteSource } from '#bytes/byte-source.ts';
import { readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import type { ByteRange } from '../publication.ts';
import { SIDX_MAX_BYTES, SIDX_MAX_DEPTH, STATED_FRAGMENTS_MAX_COUNT } from './publication-limits.ts';

/** What a segment index says: consecutive subsegments on one timescale. */
export interface SegmentIndex {
  /** Ticks per second. */
  readonly timescale: number;
  /** Presentation time of the first subsegment, in ticks. */
  readonly startTicks: bigint;
  readonly subsegments: readonly Subsegment[];
}

export interface Subsegment {
  readonly offset: number;
  readonly length: number;
  readonly durationTicks: number;
}

/** `reference_type` and `referenced_size` share 32 bits, size in the lower 31; every reference takes 12 bytes. */
const REFERENCE_SIZE_BYTES = 12;

/**
 * Reads the segment index (`sidx`, ISO/IEC 14496-12 §8.16.3) at `[offset, offset + length)` and every index it refers
 * to, and returns the subsegments in order.
 */
export async function readSegmentIndex(
  source: ByteSource,
  range: ByteRange,
  signal: AbortSignal,
  depth = 0,
): Promise<SegmentIndex> {
  const { offset, length } = range;
  const refuse = (problem: string): never => {
    throw new AppError('SEGMENT_INDEX_MALFORMED', { file: source.name, offset, problem });
  };
  if (depth > SIDX_MAX_DEPTH) refuse(`it nests more than ${SIDX_MAX_DEPTH} deep`);
  if (length > SIDX_MAX_BYTES || length < 8 || offset + length > source.sizeBytes) refuse('its size cannot be right');
  const sidx = parseSidx(await readRange(source, offset, length, signal)) ?? refuse('it is cut short or no sidx box');
  const subsegments: Subsegment[] = [];
  let start = offset + sidx.sizeBytes + sidx.firstOffset;
  for (const { isIndex, sizeBytes, durationTicks } of sidx.references) {
    const end = start + sizeBytes;
    if (end > source.sizeBytes) refuse(`it refers to byte ${end} of a file of ${source.sizeBytes} bytes`);
    if (isIndex) {
      const inner = await readSegmentIndex(source, { offset: start, length: sizeBytes }, signal, depth + 1);
      if (inner.timescale !== sidx.timescale) refuse('it refers to an index of another timescale');
      for (const subsegment of inner.subsegments) subsegments.push(subsegment);
    } else {
      subsegments.push({ offset: start, length: sizeBytes, durationTicks });
    }
    if (subsegments.length > STATED_FRAGMENTS_MAX_COUNT)
      refuse(`it has more than ${STATED_FRAGMENTS_MAX_COUNT} references`);
    start = end;
  }
  return { timescale: sidx.timescale, startTicks: sidx.startTicks, subsegments };
}

/** Top-level boxes that are passed while looking for a segment index; it stands before the first fragment. */
const BOXES_BEFORE_SIDX_MAX = 64;

/** Finds the first segment index of a file among its top-level boxes, or null where a fragment comes first. */
export async function findSegmentIndex(source: ByteSource, signal: AbortSignal): Promise<ByteRange | null> {
  let offset = 0;
  for (let passed = 0; passed < BOXES_BEFORE_SIDX_MAX && offset + 16 <= source.sizeBytes; passed += 1) {
    const header = await readRange(source, offset, 16, signal);
    const type = header.toString('latin1', 4, 8);
    const compact = header.readUInt32BE(0);
    const length = compact === 1 ? Number(header.readBigUInt64BE(8)) : compact;
    if (type === 'sidx') return { offset, length };
    if (type === 'moof' || length < 8) return null;
    offset += length;
  }
  return null;
}

interface ParsedSidx {
  readonly sizeBytes: number;
  readonly timescale: number;
  readonly startTicks: bigint;
  readonly firstOffset: number;
  readonly references: readonly {
    readonly isIndex: boolean;
    readonly sizeBytes: number;
    readonly durationTicks: number;
  }[];
}

/** Undefined where the bytes hold no whole sidx box. */
function parseSidx(bytes: Buffer): ParsedSidx | undefined {
  const sizeBytes = bytes.readUInt32BE(0);
  if (bytes.toString('latin1', 4, 8) !== 'sidx' || sizeBytes > bytes.length || sizeBytes < 32) return undefined;
  const isWide = bytes[8] !== 0;
  const timescale = bytes.readUInt32BE(16);
  const countAt = isWide ? 38 : 30;
  if (timescale === 0 || sizeBytes < countAt + 2) return undefined;
  const startTicks = isWide ? bytes.readBigUInt64BE(20) : BigInt(bytes.readUInt32BE(20));
  const firstOffset = isWide ? Number(bytes.readBigUInt64BE(28)) : bytes.readUInt32BE(24);
  const count = bytes.readUInt16BE(countAt);
  if (sizeBytes < countAt + 2 + count * REFERENCE_SIZE_BYTES) return undefined;
  const references = Array.from({ length: count }, (_, index) => {
    const at = countAt + 2 + index * REFERENCE_SIZE_BYTES;
    const word = bytes.readUInt32BE(at);
    return { isIndex: word >>> 31 === 1, sizeBytes: word & 0x7fffffff, durationTicks: bytes.readUInt32BE(at + 4) };
  });
  return { sizeBytes, timescale, startTicks, firstOffset, references };
}
