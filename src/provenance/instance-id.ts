import { hash } from 'node:crypto';
import type { StagingKey } from '#bytes/staged-name.ts';
import { decodeCbor, onlyCbor, onlyChild } from './jumbf.ts';
import { manifestIn } from './manifest-store.ts';

/**
 * Returns the identifier of the asset that an input becomes, a UUID of version 8 (RFC 9562). It is the same in every run of the
 * input, so that a run recognizes the output of an earlier one whose result was lost.
 */
export function instanceIdOf({ jobId, inputIndex }: Pick<StagingKey, 'jobId' | 'inputIndex'>): string {
  const digest = hash('sha256', `${jobId} ${inputIndex}`);
  const parts = [digest.slice(0, 8), digest.slice(8, 12), `8${digest.slice(13, 16)}`, `8${digest.slice(17, 20)}`];
  return `xmp:iid:${[...parts, digest.slice(20, 32)].join('-')}`;
}

/** Tells whether the active manifest of a store is that of an input, by its identifier. */
export function isManifestOf(store: Buffer, input: Pick<StagingKey, 'jobId' | 'inputIndex'>): boolean {
  const claim = decodeCbor(onlyCbor(onlyChild(manifestIn(store), 'c2pa.claim.v2')));
  return (claim as { readonly instanceID?: unknown } | undefined)?.instanceID === instanceIdOf(input);
}
