import { createHash } from 'node:crypto';
import { z } from 'zod';
import { knownAlgorithm } from '#bytes/splice-plan.ts';
import { decodeCbor, type JumbfBox, onlyCbor, onlyChild } from '#provenance/jumbf.ts';
import { claimOf, manifestIn } from '#provenance/manifest-store.ts';

const reference = z.object({ url: z.string(), hash: z.instanceof(Uint8Array), alg: z.string().nullish() });
const storedClaim = z.object({
  alg: z.string().nullish(),
  assertions: z.array(reference).optional(),
  created_assertions: z.array(reference).optional(),
  gathered_assertions: z.array(reference).optional(),
});
type StoredClaim = z.infer<typeof storedClaim>;

const ASSERTION_STORE = 'c2pa.assertions';

/** The active manifest of a store. */
interface StoredManifest {
  readonly label: string;
  /** SHA-256 of its claim, which is what the signature covers. */
  readonly claimDigest: string;
  readonly assertions: readonly JumbfBox[];
  /** Undefined where it cannot be read, or lists other assertions than the manifest has. */
  readonly claim: StoredClaim | undefined;
}

/** Returns the active manifest of a store, its last one; undefined where it cannot be told. */
export function activeManifestOf(store: Buffer): StoredManifest | undefined {
  const manifest = manifestIn(store);
  if (manifest === undefined) return undefined;
  const assertions = onlyChild(manifest, ASSERTION_STORE)?.children ?? [];
  const box = claimOf(manifest);
  const claimDigest = createHash('sha256')
    .update(box?.bytes ?? '')
    .digest('hex');
  return { label: manifest.label, claimDigest, assertions, claim: readClaim(box, assertions) };
}

function readClaim(box: JumbfBox | undefined, assertions: readonly JumbfBox[]): StoredClaim | undefined {
  const claim = storedClaim.safeParse(decodeCbor(onlyCbor(box))).data;
  return claim !== undefined && claimsAll(assertions, claim) ? claim : undefined;
}

/** Tells whether a claim lists the assertions of its manifest by their actual hashes, and no others. */
function claimsAll(assertions: readonly JumbfBox[], claim: StoredClaim): boolean {
  const { assertions: listed = [], created_assertions: created = [], gathered_assertions: gathered = [] } = claim;
  return (
    listed.length + created.length + gathered.length === assertions.length &&
    assertions.every((assertion) => isClaimed(assertion, claim))
  );
}

/** Returns true when a claim references an assertion by its actual hash; with `created`, among its created ones only. */
export function isClaimed({ label, bytes }: JumbfBox, claim: StoredClaim, which: 'any' | 'created' = 'any'): boolean {
  const created = claim.created_assertions ?? [];
  const others = [...(claim.assertions ?? []), ...(claim.gathered_assertions ?? [])];
  const stated = [...created, ...others].filter(({ url }) => url.endsWith(`${ASSERTION_STORE}/${label}`));
  const [only, ...further] = stated;
  if (only === undefined || further.length > 0 || (which === 'created' && !created.includes(only))) return false;
  const algorithm = knownAlgorithm(only.alg ?? claim.alg ?? 'sha256');
  if (algorithm === undefined) return false;
  return Buffer.compare(createHash(algorithm).update(bytes).digest(), only.hash) === 0;
}
