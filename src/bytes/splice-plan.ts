/**
 * A signed output described as an ordered list of copies and insertions. Plans are pure data: formats make them,
 * `executePlan` walks them once.
 */
export interface SplicePlan {
  readonly splices: readonly Splice[];
  /** What is hashed while the plan is walked. */
  readonly hashing: HashingPlan;
}

/**
 * Where the bytes of a splice are hashed:
 * `flat`, one running hash over everything so marked, in plan order;
 * `leaves`, one hash per block of `HashingPlan.leafSizeBytes` (the last may be shorter); at most one copy in a plan;
 * `none`, excluded from the hard binding.
 */
export type HashedInto = 'flat' | 'leaves' | 'none';

export type Splice =
  /** Output bytes taken unchanged from the source's `[offset, offset + length)`. */
  | { readonly kind: 'copy'; readonly offset: number; readonly length: number; readonly into: HashedInto }
  /** Output bytes that the plan brings itself; `original` are the source bytes, as many, that they stand in for. */
  | {
      readonly kind: 'insert';
      readonly bytes: Uint8Array;
      readonly into: HashedInto;
      readonly original?: Uint8Array;
    }
  /** Bytes that are hashed but not written, as the offset markers of `c2pa.hash.bmff.v3` are. */
  | { readonly kind: 'mark'; readonly bytes: Uint8Array }
  /** Output bytes of known length that are filled when all else is written; never hashed. At most one in a plan. */
  | { readonly kind: 'hole'; readonly length: number };

export interface HashingPlan {
  readonly algorithm: HashAlgorithm;
  /** Size of a Merkle leaf in bytes; present exactly when a splice is hashed into `leaves`. */
  readonly leafSizeBytes?: number;
}

/** The hash algorithms that the C2PA specification allows, by its names (2.2, §13.1). */
export type HashAlgorithm = 'sha256' | 'sha384' | 'sha512';

/** What walking a plan computed. */
export interface PlanDigests {
  /** Digest of everything hashed into `flat`. */
  readonly flat: Uint8Array;
  /** Digests of the leaves in order; empty where the plan has none. */
  readonly leaves: readonly Uint8Array[];
  /** SHA-256 of the source bytes that went into the output, in output order; where `WalkOptions` ask for it. */
  readonly source?: Uint8Array;
}

/** Length of the output that a plan describes, in bytes. */
export function outputSizeBytes(plan: SplicePlan): number {
  let sizeBytes = 0;
  for (const splice of plan.splices) sizeBytes += outputLengthOf(splice);
  return sizeBytes;
}

/** Position of the plan's hole in the output, in bytes. Throws where the plan has none. */
export function holePosition(plan: SplicePlan): number {
  let position = 0;
  for (const splice of plan.splices) {
    if (splice.kind === 'hole') return position;
    position += outputLengthOf(splice);
  }
  throw new Error('the plan has no hole');
}

/** How many bytes a splice contributes to the output. */
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
