import assert from 'node:assert/strict';

/**
 * Signed output as an ordered list of copies and insertions. Plans are pure data: formats make them, `executePlan`
 * executes them in one pass.
 */
export interface SplicePlan {
  readonly splices: readonly Splice[];
  /** Hashes to compute during execution. */
  readonly hashing: HashingPlan;
}

/**
 * Hash that the bytes of a splice go into:
 * - `flat`: one hash over all such bytes, in plan order;
 * - `leaves`: one hash per block of `HashingPlan.leafSizeBytes` (the last may be shorter); at most one copy of a plan;
 * - `none`: excluded from the hard binding.
 */
export type HashedInto = 'flat' | 'leaves' | 'none';

export type Splice =
  /** Bytes `[offset, offset + length)` of the source, unchanged. */
  | { readonly kind: 'copy'; readonly offset: number; readonly length: number; readonly into: HashedInto }
  /** Bytes of the plan; `original` are the source bytes of the same length that they replace. */
  | {
      readonly kind: 'insert';
      readonly bytes: Uint8Array;
      readonly into: HashedInto;
      readonly original?: Uint8Array;
    }
  /** Bytes that are hashed but not written, such as the offset markers of `c2pa.hash.bmff.v3`. */
  | { readonly kind: 'mark'; readonly bytes: Uint8Array }
  /** Output bytes that are written last, by `fillHole`; never hashed. At most one in a plan. */
  | { readonly kind: 'hole'; readonly length: number };

interface HashingPlan {
  readonly algorithm: HashAlgorithm;
  /** Size of a Merkle leaf in bytes; present if and only if a splice is hashed into `leaves`. */
  readonly leafSizeBytes?: number;
}

/** Hash algorithm allowed by C2PA (2.2, §13.1). */
export type HashAlgorithm = 'sha256' | 'sha384' | 'sha512';

/** Returns a hash algorithm by its name in C2PA; undefined for one that is not known here. */
export function knownAlgorithm(name: string): HashAlgorithm | undefined {
  return name === 'sha256' || name === 'sha384' || name === 'sha512' ? name : undefined;
}

/** Digests that executing a plan computed. */
export interface PlanDigests {
  /** Digest of the bytes hashed into `flat`. */
  readonly flat: Uint8Array;
  /** Digests of the leaves in order; empty for a plan without leaves. */
  readonly leaves: readonly Uint8Array[];
  /** SHA-256 of the source bytes in the output, in output order, where `ExecuteOptions.digestSource` is set. */
  readonly source?: Uint8Array;
}

/** Returns the size of a plan's output in bytes. */
export function outputSizeBytes(plan: SplicePlan): number {
  let sizeBytes = 0;
  for (const splice of plan.splices) sizeBytes += outputLengthOf(splice);
  return sizeBytes;
}

/** Returns the position of the plan's hole in the output, in bytes. Throws where the plan has none. */
export function holePosition(plan: SplicePlan): number {
  let position = 0;
  for (const splice of plan.splices) {
    if (splice.kind === 'hole') return position;
    position += outputLengthOf(splice);
  }
  throw new Error('the plan has no hole');
}

/** Returns the number of bytes that a splice adds to the output. */
export function outputLengthOf(splice: Splice): number {
  switch (splice.kind) {
    case 'copy':
    case 'hole':
      return splice.length;
    case 'insert':
      return splice.bytes.length;
    case 'mark':
      return 0;
  }
}

/** Range of the output that is an unchanged range of the source, in bytes. */
export interface CopyRun {
  /** Position in the output. */
  readonly position: number;
  /** Offset in the source. */
  readonly offset: number;
  readonly length: number;
}

/** Returns the longest ranges that a plan copies from the source, in output order, however they are hashed. */
export function copyRunsOf(plan: SplicePlan): CopyRun[] {
  const runs: { position: number; offset: number; length: number }[] = [];
  let position = 0;
  for (const splice of plan.splices) {
    const length = outputLengthOf(splice);
    if (splice.kind === 'copy' && length > 0) {
      const last = runs.at(-1);
      const continues =
        last !== undefined && last.position + last.length === position && last.offset + last.length === splice.offset;
      if (continues) last.length += length;
      else runs.push({ position, offset: splice.offset, length });
    }
    position += length;
  }
  return runs;
}

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
