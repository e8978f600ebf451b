import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { raceAbort } from '#concurrency/race-abort.ts';
import type { CrJsonAnswer, CrJsonTask } from './reading/reader-thread.ts';

export type { CrJsonAsset } from './reading/reader-thread.ts';

/** Has the extension of this module: in a build, both are JavaScript. */
const THREAD_URL = new URL(`./reading/reader-thread${extname(import.meta.url)}`, import.meta.url);

/**
 * Reads an asset as crJSON, the official reader's complete description, which only its WASM build gives. It runs on
 * a thread of its own, which ends with the call. Returns the text, or why there is none; throws only when the
 * signal is aborted.
 */
export async function readCrJson(task: CrJsonTask, signal: AbortSignal): Promise<CrJsonAnswer> {
  signal.throwIfAborted();
  const worker = new Worker(THREAD_URL, { name: 'crjson-reader' });
  const { promise, resolve, reject } = Promise.withResolvers<CrJsonAnswer>();
  worker.once('message', resolve);
  worker.once('error', reject);
  worker.once('exit', () => reject(new Error('the thread that reads crJSON has exited')));
  worker.postMessage(task);
  try {
    return await raceAbort(promise, signal);
  } finally {
    void worker.terminate();
  }
}
