import { IDENTITY_LABEL } from './describe-identities.ts';
import { onlyChild } from './jumbf.ts';
import { parseManifestStore } from './manifest-store.ts';
import { type ReadableAsset, readInWasm } from './reader-threads.ts';
import { MANIFEST_STORE_TYPE } from './sdk/sdk.ts';
import type { TrustLists } from './trust-lists.ts';
import type { ManifestReport } from './validation-report.ts';

/** Returns the largest number of identity assertions that a manifest of a store has. */
export function mostIdentitiesIn(store: Uint8Array): number {
  const manifests = parseManifestStore(store)?.children ?? [];
  const identities = manifests.map((manifest) =>
    onlyChild(manifest, 'c2pa.assertions')?.children.filter(({ label }) => label.startsWith(IDENTITY_LABEL)),
  );
  return Math.max(0, ...identities.map((found) => found?.length ?? 0));
}

/**
 * Has the WASM build read the identity assertions of a manifest store, or of an asset whose store is not known, by the lists of
 * publishers. The native build knows no such lists (c2pa-rs#2599). Only what the report says of identity assertions counts.
 * `most` is the largest number of them in a manifest. Returns null where there is none, and a report on nothing where none can be
 * read, or several of one manifest: they are never told apart, and there may be thousands. Throws only when the signal is aborted.
 */
export async function readIdentities(
  found: Uint8Array | ReadableAsset,
  most: number,
  { data: { publishers, allowed } }: TrustLists,
  signal: AbortSignal,
): Promise<ManifestReport | null> {
  if (most === 0) return null;
  if (most > 1) return { manifests: {} };
  const asset = found instanceof Uint8Array ? { bytes: found, mediaType: MANIFEST_STORE_TYPE } : found;
  const answer = await readInWasm({ answer: 'report', asset, anchors: { publishers, allowed } }, signal);
  return 'problem' in answer ? { manifests: {} } : answer.report;
}
