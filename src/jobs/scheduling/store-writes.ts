import { raceTimeout } from '#concurrency/race-abort.ts';
import { type Backoff, backoffMs, pause } from '#concurrency/retry.ts';
import { AppError } from '#errors/app-error.ts';
import type { Log } from '#telemetry/logger.ts';
import { OutageLog } from '#telemetry/outage-log.ts';

const BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 };

/** The shortest interval between two probes, in milliseconds. Health checks in between share the result. */
const PROBE_INTERVAL_MS = 1_000;

/** The bound on a probe, in milliseconds; then the store counts as unreachable. */
const PROBE_TIMEOUT_MS = 5_000;

const STORE = 'job_store';

/** Writes to the job store, and knows whether it can be written. */
export class StoreWrites {
  readonly #log: Log;
  readonly #outage: OutageLog;
  readonly #probeWrite: () => Promise<void>;
  readonly #signal: AbortSignal;
  /** True while a write is retried. */
  #fails = false;
  /** The probe that runs, or that ended less than `PROBE_INTERVAL_MS` ago. */
  #probed: Promise<boolean> | null = null;

  /** Nothing is retried after the signal is aborted; a first attempt is still made. */
  constructor(log: Log, probeWrite: () => Promise<void>, signal: AbortSignal) {
    this.#log = log;
    this.#probeWrite = probeWrite;
    this.#outage = new OutageLog(log, {
      level: 'error',
      begins: 'the job store is away: nothing is accepted or recorded',
      goesOn: 'the job store is still away',
      ends: 'the job store works again',
    });
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#outage.stop());
  }

  /**
   * Returns true when no write fails now, and a probe succeeded at most `PROBE_INTERVAL_MS` ago; false where it has not ended in
   * time. Never rejects.
   */
  async work(): Promise<boolean> {
    if (this.#fails) return false;
    this.#probed ??= this.#probe().finally(() => {
      const forget = () => {
        this.#probed = null;
      };
      setTimeout(forget, PROBE_INTERVAL_MS).unref();
    });
    return await raceTimeout(this.#probed, PROBE_TIMEOUT_MS, false);
  }

  /**
   * Repeats a write that must not be lost until it succeeds: a full disk or an unreachable database must not cost a result. Resolves
   * with undefined after an abort, or when the statement is wrong.
   */
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

  /** Probes by a write: a read would succeed on a full disk. */
  async #probe(): Promise<boolean> {
    try {
      await this.#probeWrite();
      this.succeeded();
      return true;
    } catch (error) {
      this.failed(error, 'the job store could not be written');
      return false;
    }
  }
}
