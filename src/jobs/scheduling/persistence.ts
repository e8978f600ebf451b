import { type Backoff, backoffMs, pause } from '#concurrency/retry.ts';
import { AppError } from '#errors/app-error.ts';
import type { Log } from '#telemetry/logger.ts';

const BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 };

/** Writes what must not be lost, with retries: a full disk or an unreachable database must not cost a result. */
export class Persistence {
  readonly #log: Log;
  readonly #signal: AbortSignal;
  #fails = false;

  /** Nothing is retried after the signal is aborted; a first attempt is still made. */
  constructor(log: Log, signal: AbortSignal) {
    this.#log = log;
    this.#signal = signal;
  }

  /** False when the last write failed. */
  get works(): boolean {
    return !this.#fails;
  }

  /** Repeats a write until it succeeds. Resolves with undefined after an abort, or when the statement is wrong. */
  async write<T>(write: () => Promise<T>): Promise<T | undefined> {
    for (let failures = 1; ; failures += 1) {
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
        await pause(backoffMs(failures, BACKOFF), this.#signal).catch(() => undefined);
      }
    }
  }
}
