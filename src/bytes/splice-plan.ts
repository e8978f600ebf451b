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

export interface HashingPlan {
  readonly algorithm: HashAlgorithm;
  /** Size of a Merkle leaf in bytes; present if and only if a splice is hashed into `leaves`. */
  readonly leafSizeBytes?: number;
}

/** Hash algorithm allowed by C2PA (2.2, §13.1). */
export type HashAlgorithm = 'sha256' | 'sha384' | 'sha512';

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
