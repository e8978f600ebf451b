import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '#errors/app-error.ts';
import type { Log } from './log.ts';

/** While the store cannot be written, what is to be written is tried again after so long, and then ever longer. */
const RETRY_FIRST_MS = 100;
const RETRY_LAST_MS = 5_000;

/** Writes what must not be lost: a full disk, or a database that is gone for a while, must cost no result. */
export class Persistence {
  readonly #log: Log;
  readonly #signal: AbortSignal;
  #fails = false;

  /** When the signal is aborted, nothing is tried again. */
  constructor(log: Log, signal: AbortSignal) {
    this.#log = log;
    this.#signal = signal;
  }

  /** Whether what was written last could be written. */
  get works(): boolean {
    return !this.#fails;
  }

  /** Writes until it succeeds; undefined where the service stops before, or the write is wrong and stays so. */
  async write<T>(write: () => Promise<T>): Promise<T | undefined> {
    for (let pauseMs = RETRY_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, RETRY_LAST_MS)) {
      try {
        const value = await write();
        this.#fails = false;
        return value;
      } catch (error) {
        this.#log.error({ err: error }, 'the job store could not be written');
        // A statement that is wrong stays wrong: its input is taken up again when the service next starts.
        if (!(error instanceof AppError)) return undefined;
        this.#fails = true;
        if (this.#signal.aborted) return undefined;
        await sleep(pauseMs, undefined, { signal: this.#signal }).catch(() => undefined);
      }
    }
  }
}
