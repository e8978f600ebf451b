import { encodedLength } from 'cborg/length';
import { holePosition, type PlanDigests, type SplicePlan } from '#bytes/splice-plan.ts';

/** Plan of the signed output of one file, and its hard binding once it has been hashed. */
export interface EmbeddingPlan {
  readonly plan: SplicePlan;
  /** Returns the hard binding assertion over the output, given the digests that `executePlan` returned for `plan`. */
  binding(digests: PlanDigests): HardBinding;
}

/** Hard binding assertion (C2PA 2.2, §9.2); byte strings are arrays of numbers, as the SDK expects. */
export interface HardBinding {
  readonly label: 'c2pa.hash.bmff.v3' | 'c2pa.hash.data';
  readonly data: Readonly<Record<string, unknown>>;
}

const ALGORITHM = 'sha256';
const DIGEST_SIZE_BYTES = 32;

/** Byte range of the output that the data hash excludes. */
interface Exclusion {
  readonly start: number;
  readonly length: number;
}

/**
 * Returns a plan of the splices with a data hash (`c2pa.hash.data`; C2PA 2.2, §9.2) that excludes only the hole and the
 * `headerSizeBytes` before it.
 */
export function planDataHash(splices: SplicePlan['splices'], headerSizeBytes: number): EmbeddingPlan {
  const plan: SplicePlan = { splices, hashing: { algorithm: ALGORITHM } };
  const hole = splices.find((splice) => splice.kind === 'hole');
  if (hole === undefined) throw new Error('the plan has no hole');
  const exclusion = { start: holePosition(plan) - headerSizeBytes, length: hole.length + headerSizeBytes };
  return { plan, binding: (digests: PlanDigests) => dataHash(exclusion, digests.flat) };
}

/** Returns a data hash of the size of every one from `planDataHash`. */
export function placeholderDataHash(): HardBinding {
  return dataHash({ start: 0, length: 0 }, new Uint8Array(DIGEST_SIZE_BYTES));
}

/**
 * Returns a plan that copies a source as it is, with a data hash of all its bytes and no exclusions: for a manifest that lies
 * in a file of its own (C2PA 2.2, §11.4).
 */
export function planWholeHash(sizeBytes: number): EmbeddingPlan {
  const plan: SplicePlan = {
    splices: [{ kind: 'copy', offset: 0, length: sizeBytes, into: 'flat' }],
    hashing: { algorithm: ALGORITHM },
  };
  return { plan, binding: ({ flat }: PlanDigests) => wholeHash(flat) };
}

/** Returns a data hash of the size of every one from `planWholeHash`. */
export function placeholderWholeHash(): HardBinding {
  return wholeHash(new Uint8Array(DIGEST_SIZE_BYTES));
}

function wholeHash(digest: Uint8Array): HardBinding {
  return { label: 'c2pa.hash.data', data: { name: 'whole file', alg: ALGORITHM, hash: [...digest], pad: [] } };
}

/** The size of the largest integer in CBOR. */
const MAX_INTEGER_BYTES = 9;

function dataHash(exclusion: Exclusion, digest: Uint8Array): HardBinding {
  // CBOR encodes an integer in as few bytes as possible. Zeros make up for the rest, so that the size does not depend on the
  // position of the manifest (C2PA 2.2, §18.5); at most 16 of them, whose own length always takes one byte.
  const usedBytes = encodedLength(exclusion.start) + encodedLength(exclusion.length);
  const pad = new Array<number>(2 * MAX_INTEGER_BYTES - usedBytes).fill(0);
  return {
    label: 'c2pa.hash.data',
    data: { exclusions: [exclusion], name: 'jumbf manifest', alg: ALGORITHM, hash: [...digest], pad },
  };
}
