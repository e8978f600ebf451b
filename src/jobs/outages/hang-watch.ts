import type { AppError } from '#errors/app-error.ts';
import type { LeasedInput } from '../store/job-store.ts';
import type { Outages } from './outages.ts';

/** The time without progress after which the folders and buckets of an input are tried, in milliseconds. */
const SILENCE_MS = 5_000;

/** A run that may hang. */
interface WatchedRun {
  readonly lease: Pick<LeasedInput, 'needs'>;
  /** Milliseconds without progress. */
  readonly idleMs: number;
  /** The error of the dependency because of which it was stopped; null where none was. */
  readonly heldUpBy: AppError | null;
  /** Stops the run. */
  holdUp(error: AppError): void;
}

/**
 * Stops inputs that make no progress because a folder or bucket hangs: a process in a dead network file system says nothing itself,
 * and one that waits for a silent server does so after minutes.
 */
export class HangWatch {
  readonly #runs: ReadonlySet<WatchedRun>;
  readonly #outages: Outages;
  readonly #timer: NodeJS.Timeout;
  #looking: Promise<void> | null = null;

  constructor(runs: ReadonlySet<WatchedRun>, outages: Outages) {
    this.#runs = runs;
    this.#outages = outages;
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = null;
      });
    }, SILENCE_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    for (const run of this.#runs) {
      if (run.idleMs <= SILENCE_MS || run.heldUpBy !== null) continue;
      const error = await this.#outages.heldUpBy(run.lease.needs);
      if (error !== null) run.holdUp(error);
    }
  }
}
