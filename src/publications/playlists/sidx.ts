import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import {
  BOX_HEADER_SIZE_BYTES,
  parseBoxHeader,
  parseSegmentIndex,
  type SegmentIndexFields,
} from '#formats/isobmff-boxes.ts';
import type { ByteRange } from '../media-part.ts';
import { MAX_LISTED_FRAGMENTS, MAX_SIDX_BOXES, MAX_SIDX_BYTES, MAX_SIDX_DEPTH } from './limits.ts';

/** The content of a segment index: consecutive subsegments on one timescale. */
export interface SegmentIndex extends Pick<SegmentIndexFields, 'timescale' | 'startTicks'> {
  readonly subsegments: readonly Subsegment[];
}

interface Subsegment extends ByteRange {
  readonly durationTicks: number;
}

/** The first read of an index, in bytes: most have no more. */
const FIRST_READ_BYTES = 16 * 1024;

/**
 * Reads the segment index (`sidx`, ISO/IEC 14496-12 §8.16.3) at `[offset, offset + length)` and every index it refers
 * to, and returns the subsegments in order. Every box is read once: one that is referred to again is refused.
 */
export async function readSegmentIndex(
  source: ByteSource,
  range: ByteRange,
  signal: AbortSignal,
): Promise<SegmentIndex> {
  const subsegments: Subsegment[] = [];
  const visited = new Set<number>();
  let bytesRead = 0;

  /** Reads an index and those below it, and adds their subsegments. */
  const walk = async ({ offset, length }: ByteRange, depth: number, timescale?: number): Promise<ParsedSidx> => {
    const refuse = (problem: string): never => {
      throw new AppError('SEGMENT_INDEX_MALFORMED', { file: source.name, offset, problem });
    };
    if (depth > MAX_SIDX_DEPTH) refuse(`it nests more than ${MAX_SIDX_DEPTH} deep`);
    if (visited.has(offset)) refuse('it is referred to more than once');
    visited.add(offset);
    if (visited.size > MAX_SIDX_BOXES) refuse(`it is one of more than ${MAX_SIDX_BOXES}`);
    const sidx = (await readSidx(offset, length, refuse)) ?? refuse('it is cut short or no sidx box');
    if (timescale !== undefined && sidx.timescale !== timescale)
      refuse('it has another timescale than what refers to it');
    let start = offset + sidx.sizeBytes + sidx.firstOffset;
    for (const { isIndex, sizeBytes, durationTicks } of sidx.references) {
      const end = start + sizeBytes;
      if (end > source.sizeBytes) refuse(`it refers to byte ${end} of a file of ${source.sizeBytes} bytes`);
      if (isIndex) await walk({ offset: start, length: sizeBytes }, depth + 1, sidx.timescale);
      else subsegments.push({ offset: start, length: sizeBytes, durationTicks });
      if (subsegments.length > MAX_LISTED_FRAGMENTS) refuse(`it has more than ${MAX_LISTED_FRAGMENTS} references`);
      start = end;
    }
    return sidx;
  };

  /** Reads the box alone: what refers to it may count the media behind it too. */
  const readSidx = async (
    offset: number,
    length: number,
    refuse: (problem: string) => never,
  ): Promise<ParsedSidx | undefined> => {
    if (length < BOX_HEADER_SIZE_BYTES || offset + length > source.sizeBytes) refuse('its size cannot be right');
    const head = await readRange(source, offset, Math.min(length, FIRST_READ_BYTES), signal);
    const sizeBytes = head.readUInt32BE(0);
    if (sizeBytes > length) return undefined;
    bytesRead += sizeBytes;
    if (bytesRead > MAX_SIDX_BYTES) refuse(`it and those before it have more than ${MAX_SIDX_BYTES} bytes`);
    if (sizeBytes <= head.length) return parseSidx(head.subarray(0, sizeBytes));
    return parseSidx(await readRange(source, offset, sizeBytes, signal));
  };

  const { timescale, startTicks } = await walk(range, 0);
  return { timescale, startTicks, subsegments };
}

/** Top-level boxes that are passed while looking for one of another type. */
const MAX_BOXES_SKIPPED = 64;

/** Finds the first segment index of a file among its top-level boxes, or null where a fragment comes first. */
export async function findSegmentIndex(source: ByteSource, signal: AbortSignal): Promise<ByteRange | null> {
  const found = await findTopBox(source, ['sidx', 'moof'], signal);
  return found?.type === 'sidx' ? { offset: found.offset, length: found.length } : null;
}

/** Finds the first top-level box of one of the types; null where there is none, or it cannot be reached. */
export async function findTopBox(
  source: ByteSource,
  types: readonly string[],
  signal: AbortSignal,
): Promise<(ByteRange & { readonly type: string }) | null> {
  let offset = 0;
  for (let passed = 0; passed < MAX_BOXES_SKIPPED && offset + 16 <= source.sizeBytes; passed += 1) {
    const head = await readRange(source, offset, 16, signal);
    const { type, sizeBytes, headerSizeBytes } = parseBoxHeader(head, offset, source.sizeBytes);
    if (types.includes(type)) return { type, offset, length: sizeBytes };
    if (sizeBytes < headerSizeBytes) return null;
    offset += sizeBytes;
  }
  return null;
}

type ParsedSidx = SegmentIndexFields & { readonly sizeBytes: number };

/** Parses a box; undefined where it is no whole sidx box. */
function parseSidx(bytes: Buffer): ParsedSidx | undefined {
  if (bytes.toString('latin1', 4, BOX_HEADER_SIZE_BYTES) !== 'sidx') return undefined;
  const index = parseSegmentIndex(bytes.subarray(BOX_HEADER_SIZE_BYTES));
  return index === undefined || index.timescale === 0 ? undefined : { ...index, sizeBytes: bytes.length };
}
