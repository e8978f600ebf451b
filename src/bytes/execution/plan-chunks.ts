import assert from 'node:assert/strict';
import { outputLengthOf, type Splice, type SplicePlan } from '../splice-plan.ts';

/**
 * Largest gap between two copies that one read covers. The fragments of a fragmented file are a few kilobytes apart,
 * and a second read costs more than the bytes in the gap.
 */
const MAX_READ_GAP_BYTES = 64 * 1024;

/** Range of output bytes that is filled, hashed and written as one, from any number of splices. */
export interface PlanChunk {
  /** Position of the chunk in the output, in bytes. */
  readonly position: number;
  length: number;
  readonly copies: ChunkCopy[];
  readonly inserts: ChunkInsert[];
  /** Hash steps in order: ranges of the chunk's buffer, or bytes that are not written. */
  readonly hashed: HashStep[];
}

/** Copy of `length` bytes of the source at `offset` to position `at` of the chunk's buffer. */
interface ChunkCopy {
  readonly offset: number;
  length: number;
  readonly at: number;
}

/** Bytes of the plan at position `at` of the chunk's buffer, with the source bytes that they replace, if any. */
interface ChunkInsert {
  readonly bytes: Uint8Array;
  readonly at: number;
  readonly original?: Uint8Array;
}

type HashStep =
  | { readonly kind: 'flat'; readonly start: number; end: number }
  | { readonly kind: 'mark'; readonly bytes: Uint8Array }
  /** A Merkle leaf or a part of it; `isLast` for its last part. */
  | { readonly kind: 'leaf'; readonly start: number; readonly end: number; readonly isLast: boolean };

/** Read of the source that serves one or more copies of a chunk. */
export interface ChunkRead {
  readonly offset: number;
  length: number;
  readonly copies: ChunkCopy[];
}

/**
 * Divides a plan into chunks of at most `chunkSizeBytes`, in output order. Chunks end at multiples of `chunkSizeBytes`
 * in the output, and at the hole, so that no two writes share a page elsewhere. A leaf may span several chunks.
 */
export function* chunksOf(plan: SplicePlan, chunkSizeBytes: number): Generator<PlanChunk> {
  let chunk = emptyChunk(0);
  for (const splice of plan.splices) {
    if (splice.kind === 'mark') {
      chunk.hashed.push({ kind: 'mark', bytes: splice.bytes });
    } else if (splice.kind === 'hole') {
      if (!isEmpty(chunk)) yield chunk;
      chunk = emptyChunk(chunk.position + chunk.length + splice.length);
    } else {
      chunk = yield* addSplice(chunk, splice, plan, chunkSizeBytes);
    }
  }
  if (!isEmpty(chunk)) yield chunk;
}

/**
 * Groups the copies of a chunk into reads: copies that are close together in the source, in ascending order, share one.
 */
export function readsOf(copies: readonly ChunkCopy[], maxReadBytes: number): ChunkRead[] {
  const reads: ChunkRead[] = [];
  let last: ChunkRead | undefined;
  for (const copy of copies) {
    const end = copy.offset + copy.length;
    const gap = last === undefined ? -1 : copy.offset - (last.offset + last.length);
    if (last !== undefined && gap >= 0 && gap <= MAX_READ_GAP_BYTES && end - last.offset <= maxReadBytes) {
      last.length = end - last.offset;
      last.copies.push(copy);
    } else {
      last = { offset: copy.offset, length: copy.length, copies: [copy] };
      reads.push(last);
    }
  }
  return reads;
}

function* addSplice(
  start: PlanChunk,
  splice: Extract<Splice, { kind: 'copy' | 'insert' }>,
  plan: SplicePlan,
  chunkSizeBytes: number,
): Generator<PlanChunk, PlanChunk> {
  assert(splice.kind === 'copy' || splice.into !== 'leaves', 'only a copy can be hashed into leaves');
  let chunk = start;
  const total = outputLengthOf(splice);
  for (let taken = 0; taken < total; ) {
    const capacity = chunkSizeBytes - (chunk.position % chunkSizeBytes) - chunk.length;
    const length = Math.min(total - taken, capacity);
    addPiece(chunk, splice, taken, length);
    if (splice.into === 'flat') addFlat(chunk, length);
    if (splice.into === 'leaves') addLeaves(chunk, { taken, length, total, leafSizeBytes: leafSizeOf(plan) });
    chunk.length += length;
    taken += length;
    if (length === capacity) {
      yield chunk;
      chunk = emptyChunk(chunk.position + chunk.length);
    }
  }
  return chunk;
}

function addPiece(
  chunk: PlanChunk,
  splice: Extract<Splice, { kind: 'copy' | 'insert' }>,
  taken: number,
  length: number,
): void {
  const at = chunk.length;
  if (splice.kind === 'copy') return addCopy(chunk, { offset: splice.offset + taken, length, at });
  const original = splice.original?.subarray(taken, taken + length);
  const bytes = splice.bytes.subarray(taken, taken + length);
  chunk.inserts.push({ bytes, at, ...(original !== undefined && { original }) });
}

function addCopy(chunk: PlanChunk, copy: ChunkCopy): void {
  const last = chunk.copies.at(-1);
  const continues =
    last !== undefined && last.offset + last.length === copy.offset && last.at + last.length === copy.at;
  if (continues) last.length += copy.length;
  else chunk.copies.push(copy);
}

/** Adds the next `length` bytes of the chunk to the flat hash. */
function addFlat(chunk: PlanChunk, length: number): void {
  const start = chunk.length;
  const last = chunk.hashed.at(-1);
  if (last?.kind === 'flat' && last.end === start) last.end += length;
  else chunk.hashed.push({ kind: 'flat', start, end: start + length });
}

interface LeavesPiece {
  readonly taken: number;
  readonly length: number;
  readonly total: number;
  readonly leafSizeBytes: number;
}

/** Adds the next `length` bytes of the chunk to the leaves: bytes `taken` and following of a copy of `total` bytes. */
function addLeaves(chunk: PlanChunk, { taken, length, total, leafSizeBytes }: LeavesPiece): void {
  for (let at = taken; at < taken + length; ) {
    const leafEnd = Math.min(at - (at % leafSizeBytes) + leafSizeBytes, total);
    const end = Math.min(leafEnd, taken + length);
    const start = chunk.length + at - taken;
    chunk.hashed.push({ kind: 'leaf', start, end: start + end - at, isLast: end === leafEnd });
    at = end;
  }
}

function leafSizeOf(plan: SplicePlan): number {
  const { leafSizeBytes } = plan.hashing;
  assert(leafSizeBytes !== undefined && leafSizeBytes > 0, 'a plan with leaves has a leaf size');
  return leafSizeBytes;
}

function emptyChunk(position: number): PlanChunk {
  return { position, length: 0, copies: [], inserts: [], hashed: [] };
}

function isEmpty(chunk: PlanChunk): boolean {
  return chunk.length === 0 && chunk.hashed.length === 0;
}
