import { holePosition, type PlanDigests, type SplicePlan } from '#bytes/splice-plan.ts';
import type { EmbeddingPlan, HardBinding } from './format-handler.ts';

const ALGORITHM = 'sha256';
const DIGEST_SIZE_BYTES = 32;

/** A byte range of the output that the data hash leaves out. */
interface Exclusion {
  readonly start: number;
  readonly length: number;
}

/**
 * Completes the splices of an output with a data hash (`c2pa.hash.data`; C2PA 2.2, §9.2) that leaves out the hole
 * and the `headerSizeBytes` before it, and nothing else.
 */
export function planDataHash(splices: SplicePlan['splices'], headerSizeBytes: number): EmbeddingPlan {
  const plan: SplicePlan = { splices, hashing: { algorithm: ALGORITHM } };
  const hole = splices.find((splice) => splice.kind === 'hole');
  if (hole === undefined) throw new Error('the plan has no hole');
  const exclusion = { start: holePosition(plan) - headerSizeBytes, length: hole.length + headerSizeBytes };
  return { plan, binding: (digests: PlanDigests) => dataHash(exclusion, digests.flat) };
}

/**
 * A data hash no smaller than any that `planDataHash` gives: CBOR writes an integer in as few bytes as it fits in, so
 * the largest integers take the most.
 */
export function placeholderDataHash(): HardBinding {
  const largest = { start: Number.MAX_SAFE_INTEGER, length: Number.MAX_SAFE_INTEGER };
  return dataHash(largest, new Uint8Array(DIGEST_SIZE_BYTES));
}

function dataHash(exclusion: Exclusion, digest: Uint8Array): HardBinding {
  return {
    label: 'c2pa.hash.data',
    // `pad` is mandatory in the SDK's schema, although nothing is padded here: the hole takes up the slack.
    data: { exclusions: [exclusion], name: 'jumbf manifest', alg: ALGORITHM, hash: [...digest], pad: [] },
  };
}
