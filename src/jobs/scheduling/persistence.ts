import { type Backoff, backoffMs, pause } from '#concurrency/retry.ts';
import { AppError } from '#errors/app-error.ts';
import type { Log } from '#telemetry/logger.ts';
import { OutageLog } from '#telemetry/outage-log.ts';
import type { WriteOutcomes } from '../store/maintenance.ts';

const BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 };

const STORE = 'job_store';

/** Writes what must not be lost, with retries: a full disk or an unreachable database must not cost a result. */
export class Persistence implements WriteOutcomes {
  readonly #log: Log;
  readonly #outage: OutageLog;
  readonly #signal: AbortSignal;
  #fails = false;

  /** Nothing is retried after the signal is aborted; a first attempt is still made. */
  constructor(log: Log, signal: AbortSignal) {
    this.#log = log;
    this.#outage = new OutageLog(log, {
      level: 'error',
      begins: 'the job store is away: nothing is accepted or recorded',
      goesOn: 'the job store is still away',
      ends: 'the job store works again',
    });
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#outage.stop());
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
        this.succeeded();
        return value;
      } catch (error) {
        this.failed(error, 'the job store could not be written');
        // A statement that is wrong stays wrong: its input is taken up again when the service next starts.
        if (!(error instanceof AppError)) return undefined;
        this.#fails = true;
        if (this.#signal.aborted) return undefined;
        await pause(backoffMs(failures, BACKOFF), this.#signal).catch(() => undefined);
      }
    }
  }

  /** Takes note of a write: an outage of the store is over. */
  succeeded(): void {
    this.#outage.works(STORE);
  }

  /** Takes note of a write that failed: the store is away, or else the statement is wrong. */
  failed(error: unknown, text: string): void {
    if (error instanceof AppError) this.#outage.away(STORE, error.reason, error.message);
    else this.#log.error({ err: error }, text);
  }
}
