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

  /** Tries each dependency once, all at the same time: where several hang, each takes until its bound. */
  async #look(): Promise<void> {
    const silent = [...this.#runs].filter(isSilent);
    const needs = [...new Set(silent.flatMap(({ lease }) => lease.needs))];
    const errors = await Promise.all(needs.map((dependency) => this.#outages.hangOf(dependency)));
    for (const run of silent.filter(isSilent)) {
      const error = errors.find((each, index) => each !== null && run.lease.needs.includes(needs[index] ?? ''));
      if (error != null) run.holdUp(error);
    }
  }
}

function isSilent({ idleMs, heldUpBy }: WatchedRun): boolean {
  return idleMs > SILENCE_MS && heldUpBy === null;
}
