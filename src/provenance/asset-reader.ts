import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { raceAbort } from '#concurrency/race-abort.ts';
import { IDENTITY_LABEL } from './describe-identities.ts';
import { onlyChild, parseJumbf } from './jumbf.ts';
import type { AssetAnswer, AssetTask, CrJsonAsset } from './reading/reader-thread.ts';
import { MANIFEST_STORE_TYPE } from './sdk/sdk.ts';
import type { TrustLists } from './trust-lists.ts';
import type { ManifestReport } from './validation-report.ts';

export type { CrJsonAsset } from './reading/reader-thread.ts';

/** Has the extension of this module: in a build, both are JavaScript. */
const THREAD_URL = new URL(`./reading/reader-thread${extname(import.meta.url)}`, import.meta.url);

/**
 * Reads an asset with the WASM build of the official reader: as crJSON, its complete description, which only that build
 * gives; or as a report. The WASM build is newer than the native one, and stricter about what a hash may leave out. It runs on
 * a thread of its own, which ends with the call. Returns the answer, or why there is none; throws only when the signal is
 * aborted.
 */
export async function readInWasm<Answer extends AssetTask['answer']>(
  answer: Answer,
  asset: CrJsonAsset,
  anchors: AssetTask['anchors'],
  signal: AbortSignal,
): Promise<AssetAnswer<Answer>> {
  signal.throwIfAborted();
  const worker = new Worker(THREAD_URL, { name: 'wasm-reader' });
  const { promise, resolve, reject } = Promise.withResolvers<AssetAnswer<Answer>>();
  worker.once('message', resolve);
  worker.once('error', reject);
  worker.once('exit', () => reject(new Error('the thread that reads an asset has exited')));
  worker.postMessage({ answer, asset, anchors } satisfies AssetTask);
  try {
    return await raceAbort(promise, signal);
  } finally {
    void worker.terminate();
  }
}

/** Returns the largest number of identity assertions that a manifest of a store has. */
export function mostIdentitiesIn(store: Uint8Array): number {
  const manifests = parseJumbf(Buffer.from(store.buffer, store.byteOffset, store.byteLength), 3)?.children ?? [];
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
  found: Uint8Array | CrJsonAsset,
  most: number,
  { data: { publishers: anchors, allowed } }: TrustLists,
  signal: AbortSignal,
): Promise<ManifestReport | null> {
  if (most === 0) return null;
  if (most > 1) return { manifests: {} };
  const asset = found instanceof Uint8Array ? { bytes: found, mediaType: MANIFEST_STORE_TYPE } : found;
  const answer = await readInWasm('report', asset, { anchors, allowed }, signal);
  return 'problem' in answer ? { manifests: {} } : answer.report;
}
