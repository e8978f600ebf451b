import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { raceAbort } from '#concurrency/race-abort.ts';
import type { ReadingAnswer, ReadingTask } from './reading/reader-thread.ts';

export type { ReadableAsset } from './reading/reader-thread.ts';

/** Terminates a thread that has been idle for this time, which is longer than hashing the next rendition takes, as a rule. */
const IDLE_TIMEOUT_MS = 5_000;
/** Limits the young generation of a thread's heap: it holds one fragment, and objects that live shortly. */
const THREAD_YOUNG_GENERATION_MB = 4;
/** Has the extension of this module: in a build, both are JavaScript. */
const THREAD_URL = new URL(`./reading/reader-thread${extname(import.meta.url)}`, import.meta.url);

const idle: ReaderThread[] = [];

/**
 * Reads an asset with the WASM build of the official reader, which players in browsers use, on a thread: the idle one that was used
 * last, or a new one, which takes some 40 MB. The WASM build is newer than the native one, stricter about what a hash may leave out,
 * and the only one that gives crJSON and reads single fragments. Returns the answer, or why there is none; throws only when the signal
 * is aborted, and terminates the thread then.
 */
export async function readInWasm<Answer extends ReadingTask['answer']>(
  task: ReadingTask & { readonly answer: Answer },
  signal: AbortSignal,
): Promise<ReadingAnswer<Answer>> {
  signal.throwIfAborted();
  const thread = idle.pop() ?? new ReaderThread();
  try {
    const answer = await raceAbort(thread.read(task), signal);
    idle.push(thread);
    thread.terminateWhenIdle(() => idle.splice(idle.indexOf(thread), 1));
    return answer as ReadingAnswer<Answer>;
  } catch (error) {
    thread.terminate();
    throw error;
  }
}

type Answer = ReadingAnswer<ReadingTask['answer']>;

/** A thread that does one task at a time. */
class ReaderThread {
  readonly #worker = new Worker(THREAD_URL, {
    name: 'wasm-reader',
    resourceLimits: { maxYoungGenerationSizeMb: THREAD_YOUNG_GENERATION_MB },
  });
  #answer: PromiseWithResolvers<Answer> | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    this.#worker.on('message', (answer: Answer) => this.#answer?.resolve(answer));
    this.#worker.on('error', (error) => this.#answer?.reject(error));
    this.#worker.on('exit', () => this.#answer?.reject(new Error('the thread that reads an asset has exited')));
  }

  read(task: ReadingTask): Promise<Answer> {
    clearTimeout(this.#timer);
    this.#worker.ref();
    this.#answer = Promise.withResolvers();
    this.#worker.postMessage(task);
    return this.#answer.promise;
  }

  /** Terminates the thread unless it is used again soon. Until then it does not keep the process alive. */
  terminateWhenIdle(onTerminate: () => void): void {
    this.#worker.unref();
    this.#timer = setTimeout(() => {
      onTerminate();
      this.terminate();
    }, IDLE_TIMEOUT_MS);
    this.#timer.unref();
  }

  terminate(): void {
    clearTimeout(this.#timer);
    void this.#worker.terminate();
  }
}
