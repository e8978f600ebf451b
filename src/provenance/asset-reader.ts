import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { raceAbort } from '#concurrency/race-abort.ts';
import type { AssetAnswer, AssetTask, CrJsonAsset } from './reading/reader-thread.ts';

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
  anchors: string | null,
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
