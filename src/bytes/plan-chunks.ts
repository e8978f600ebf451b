import assert from 'node:assert/strict';
import { outputLengthOf, type Splice, type SplicePlan } from './splice-plan.ts';

/**
 * Copies of one source whose gaps are no wider than this are read with one request, and the gaps thrown away:
 * the fragments of a fragmented file are a few kilobytes apart, and a read costs more than the bytes between.
 */
export const WIDEST_READ_GAP_BYTES = 64 * 1024;

/** A run of output bytes that fits one buffer: filled, hashed and written as one, however many splices it came from. */
export interface PlanChunk {
  /** Where the chunk starts in the output, in bytes. */
  readonly position: number;
  length: number;
  readonly copies: ChunkCopy[];
  readonly inserts: ChunkInsert[];
  /** What is hashed, in order: ranges of the chunk's buffer, or bytes that are not written. */
  readonly hashed: HashStep[];
}

/** `length` bytes of the source from `offset` on, to be put into the chunk's buffer at `at`. */
export interface ChunkCopy {
  readonly offset: number;
  length: number;
  readonly at: number;
}

/** Bytes of the plan at `at`, and the source bytes that they stand in for, where there are any. */
export interface ChunkInsert {
  readonly bytes: Uint8Array;
  readonly at: number;
  readonly original?: Uint8Array;
}

export type HashStep =
  | { readonly kind: 'flat'; readonly start: number; end: number }
  | { readonly kind: 'mark'; readonly bytes: Uint8Array }
  /** A leaf or a piece of one; `isLast` where the leaf ends with it. */
  | { readonly kind: 'leaf'; readonly start: number; readonly end: number; readonly isLast: boolean };

/** One read of the source that serves one or more copies of a chunk. */
export interface ChunkRead {
  readonly offset: number;
  length: number;
  readonly copies: ChunkCopy[];
}

/**
 * Cuts a plan into chunks of at most `chunkSizeBytes`, in output order. Chunks end on multiples of `chunkSizeBytes` in
 * the output, and at the hole, so that no two writes share a page but there. A leaf may lie in several.
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

/** Groups a chunk's copies into reads: neighbours in the source, in ascending order and close together, share one. */
export function readsOf(copies: readonly ChunkCopy[], longestReadBytes: number): ChunkRead[] {
  const reads: ChunkRead[] = [];
  let last: ChunkRead | undefined;
  for (const copy of copies) {
    const end = copy.offset + copy.length;
    const gap = last === undefined ? -1 : copy.offset - (last.offset + last.length);
    if (last !== undefined && gap >= 0 && gap <= WIDEST_READ_GAP_BYTES && end - last.offset <= longestReadBytes) {
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
    const room = chunkSizeBytes - (chunk.position % chunkSizeBytes) - chunk.length;
    const length = Math.min(total - taken, room);
    addPiece(chunk, splice, taken, length);
    if (splice.into === 'flat') addFlat(chunk, length);
    if (splice.into === 'leaves') addLeaves(chunk, { taken, length, total, leafSizeBytes: leafSizeOf(plan) });
    chunk.length += length;
    taken += length;
    if (length === room) {
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

/** The next `length` bytes of the chunk go into the flat hash. */
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

/** The next `length` bytes of the chunk are those from `taken` on of the `total` that are hashed into leaves. */
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
  assert(leafSizeBytes !== undefined && leafSizeBytes > 0, 'a plan with leaves says how large they are');
  return leafSizeBytes;
}

function emptyChunk(position: number): PlanChunk {
  return { position, length: 0, copies: [], inserts: [], hashed: [] };
}

function isEmpty(chunk: PlanChunk): boolean {
  return chunk.length === 0 && chunk.hashed.length === 0;
}
