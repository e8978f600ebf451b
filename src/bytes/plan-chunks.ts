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
  readonly inserts: { readonly bytes: Uint8Array; readonly at: number }[];
  /** What goes into the flat hash, in order: ranges of the chunk's buffer, or bytes that are not written. */
  readonly flat: FlatStep[];
  readonly leaves: { readonly index: number; readonly start: number; readonly end: number }[];
}

/** `length` bytes of the source from `offset` on, to be put into the chunk's buffer at `at`. */
export interface ChunkCopy {
  readonly offset: number;
  length: number;
  readonly at: number;
}

export type FlatStep =
  | { readonly kind: 'range'; readonly start: number; end: number }
  | { readonly kind: 'mark'; readonly bytes: Uint8Array };

/** One read of the source that serves one or more copies of a chunk. */
export interface ChunkRead {
  readonly offset: number;
  length: number;
  readonly copies: ChunkCopy[];
}

/**
 * Cuts a plan into chunks of at most `chunkSizeBytes`, in output order. Chunks end on multiples of `chunkSizeBytes` in
 * the output, so that no two writes share a page; around leaves they are cut so that every leaf lies in one chunk.
 */
export function* chunksOf(plan: SplicePlan, chunkSizeBytes: number): Generator<PlanChunk> {
  let chunk = emptyChunk(0);
  for (const splice of plan.splices) {
    if (splice.kind === 'mark') {
      chunk.flat.push({ kind: 'mark', bytes: splice.bytes });
    } else if (splice.kind === 'hole') {
      if (!isEmpty(chunk)) yield chunk;
      chunk = emptyChunk(chunk.position + chunk.length + splice.length);
    } else if (splice.into === 'leaves') {
      assert(splice.kind === 'copy', 'only a copy can be hashed into leaves');
      if (!isEmpty(chunk)) yield chunk;
      const position = chunk.position + chunk.length;
      yield* leafChunks(splice, position, leafSizeOf(plan), chunkSizeBytes);
      chunk = emptyChunk(position + splice.length);
    } else {
      chunk = yield* addSplice(chunk, splice, chunkSizeBytes);
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
  chunkSizeBytes: number,
): Generator<PlanChunk, PlanChunk> {
  let chunk = start;
  const total = outputLengthOf(splice);
  for (let taken = 0; taken < total; ) {
    const room = chunkSizeBytes - (chunk.position % chunkSizeBytes) - chunk.length;
    const length = Math.min(total - taken, room);
    addPiece(chunk, splice, taken, length);
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
  if (splice.kind === 'insert') chunk.inserts.push({ bytes: splice.bytes.subarray(taken, taken + length), at });
  else addCopy(chunk, { offset: splice.offset + taken, length, at });
  if (splice.into === 'flat') addFlatRange(chunk, at, at + length);
  chunk.length += length;
}

function addCopy(chunk: PlanChunk, copy: ChunkCopy): void {
  const last = chunk.copies.at(-1);
  const continues =
    last !== undefined && last.offset + last.length === copy.offset && last.at + last.length === copy.at;
  if (continues) last.length += copy.length;
  else chunk.copies.push(copy);
}

function addFlatRange(chunk: PlanChunk, start: number, end: number): void {
  const last = chunk.flat.at(-1);
  if (last?.kind === 'range' && last.end === start) last.end = end;
  else chunk.flat.push({ kind: 'range', start, end });
}

function* leafChunks(
  copy: Extract<Splice, { kind: 'copy' }>,
  position: number,
  leafSizeBytes: number,
  chunkSizeBytes: number,
): Generator<PlanChunk> {
  assert(leafSizeBytes <= chunkSizeBytes, 'a leaf fits into one chunk');
  const wholeLeavesBytes = chunkSizeBytes - (chunkSizeBytes % leafSizeBytes);
  for (let taken = 0; taken < copy.length; taken += wholeLeavesBytes) {
    const length = Math.min(wholeLeavesBytes, copy.length - taken);
    const chunk = emptyChunk(position + taken);
    chunk.length = length;
    chunk.copies.push({ offset: copy.offset + taken, length, at: 0 });
    for (let start = 0; start < length; start += leafSizeBytes) {
      const index = (taken + start) / leafSizeBytes;
      chunk.leaves.push({ index, start, end: Math.min(start + leafSizeBytes, length) });
    }
    yield chunk;
  }
}

function leafSizeOf(plan: SplicePlan): number {
  const { leafSizeBytes } = plan.hashing;
  assert(leafSizeBytes !== undefined && leafSizeBytes > 0, 'a plan with leaves says how large they are');
  return leafSizeBytes;
}

function emptyChunk(position: number): PlanChunk {
  return { position, length: 0, copies: [], inserts: [], flat: [], leaves: [] };
}

function isEmpty(chunk: PlanChunk): boolean {
  return chunk.length === 0 && chunk.flat.length === 0;
}
