import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { raceAbort } from '#concurrency/race-abort.ts';
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

const LABEL = 'cawg.identity';

/**
 * Has the WASM build read the identity assertions of a manifest store, or of an asset whose store is not known, by the lists of
 * publishers. The native build knows no such lists (c2pa-rs#2599). Only what the report says of identity assertions counts.
 * Returns null where the store has none, and a report on nothing where none can be read; throws only when the signal is aborted.
 */
export async function readIdentities(
  found: Uint8Array | CrJsonAsset,
  { data: { publishers: anchors, allowed } }: TrustLists,
  signal: AbortSignal,
): Promise<ManifestReport | null> {
  if (found instanceof Uint8Array && !Buffer.from(found.buffer, found.byteOffset, found.byteLength).includes(LABEL)) {
    return null;
  }
  const asset = found instanceof Uint8Array ? { bytes: found, mediaType: MANIFEST_STORE_TYPE } : found;
  const answer = await readInWasm('report', asset, { anchors, allowed }, signal);
  return 'problem' in answer ? { manifests: {} } : answer.report;
}
