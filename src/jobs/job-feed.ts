import type { JobSnapshot } from './job.ts';

/** What happens to a job. */
export interface JobEvent {
  /**
   * `progress`: it has moved; `input`: inputs have ended, the results are their entries and no others; `done`: it has
   * ended, the results are all entries.
   */
  readonly type: 'progress' | 'input' | 'done';
  readonly job: JobSnapshot;
}

/** Where a feed learns of jobs. Each may reject while the store cannot be reached. */
export interface FeedSource {
  find(jobId: string): Promise<JobSnapshot | null>;
  /** The indexes of a job's inputs that have ended. */
  endedInputs(jobId: string): Promise<readonly number[]>;
  /** JSON of the result entries of inputs that have ended. */
  entriesOf(jobId: string, inputIndexes: readonly number[]): Promise<string>;
}

/** A job that is followed is looked at so often, once for all who follow it. Its end is told at once. */
const LOOK_INTERVAL_MS = 500;

/** At most so many entries go into one event. */
const MAX_ENTRIES = 500;

/**
 * Follows jobs, wherever they run. What happened is found by comparing how a job is with what was told last, at the
 * moment when the follower asks for more: so a slow one skips steps of progress, and nothing piles up for it.
 */
export class JobFeed {
  readonly #source: FeedSource;
  readonly #intervalMs: number;
  readonly #watches = new Map<string, Watch>();

  constructor(source: FeedSource, intervalMs = LOOK_INTERVAL_MS) {
    this.#source = source;
    this.#intervalMs = intervalMs;
  }

  /** The events of a job from now on; they end after `done`, when the signal is aborted, or when the job is gone. */
  async *follow(jobId: string, signal: AbortSignal): AsyncGenerator<JobEvent, void, void> {
    const watch = this.#enter(jobId);
    try {
      yield* this.#eventsOf(watch, signal);
    } finally {
      this.#leave(watch);
    }
  }

  /** To be called when a job has ended in this process. */
  ended(jobId: string): void {
    // What cannot be looked at now is looked at in the next interval.
    this.#watches
      .get(jobId)
      ?.look()
      .catch(() => undefined);
  }

  async *#eventsOf(watch: Watch, signal: AbortSignal): AsyncGenerator<JobEvent, void, void> {
    await watch.look();
    // Of a job that has ended already, `done` tells everything.
    let told = hasEnded(watch.job) ? watch.ended.length : 0;
    let lastProgress = '';
    while (watch.job !== null && !signal.aborted) {
      // Taken before anything is waited for, so that no change falls in between.
      const changed = watch.changed;
      while (told < watch.ended.length) {
        const indexes = watch.ended.slice(told, told + MAX_ENTRIES);
        told += indexes.length;
        const resultsJson = await this.#source.entriesOf(watch.jobId, indexes);
        yield { type: 'input', job: { ...watch.job, resultsJson } };
      }
      if (hasEnded(watch.job)) return yield { type: 'done', job: watch.job };
      const progress = JSON.stringify([watch.job.status, watch.job.progress]);
      if (progress !== lastProgress) yield { type: 'progress', job: watch.job };
      lastProgress = progress;
      await untilAborted(changed, signal);
    }
  }

  #enter(jobId: string): Watch {
    const watch = this.#watches.get(jobId) ?? new Watch(jobId, this.#source, this.#intervalMs);
    this.#watches.set(jobId, watch);
    watch.followers += 1;
    return watch;
  }

  #leave(watch: Watch): void {
    watch.followers -= 1;
    if (watch.followers > 0) return;
    watch.end();
    this.#watches.delete(watch.jobId);
  }
}

/** How a job is, as far as somebody follows it. */
class Watch {
  readonly jobId: string;
  followers = 0;
  /** Null where the job is gone. */
  job: JobSnapshot | null = null;
  /** Inputs that have ended, in the order in which that was found; it only grows. */
  readonly ended: number[] = [];
  readonly #known = new Set<number>();
  readonly #source: FeedSource;
  readonly #timer: NodeJS.Timeout;
  #changed = Promise.withResolvers<void>();
  #looking: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;

  constructor(jobId: string, source: FeedSource, intervalMs: number) {
    this.jobId = jobId;
    this.#source = source;
    // While the store cannot be reached nothing is told; the next look tries again.
    this.#timer = setInterval(() => void this.look().catch(() => undefined), intervalMs).unref();
  }

  /** Settles after the next look. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  /** Looks at the job. A look that is under way began before what is asked about, so one more follows it. */
  look(): Promise<void> {
    this.#next ??= this.#looking
      .catch(() => undefined)
      .then(() => {
        this.#next = null;
        this.#looking = this.#look();
        return this.#looking;
      });
    return this.#next;
  }

  end(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    // What has ended stays as it is.
    if (hasEnded(this.job)) return;
    const job = await this.#source.find(this.jobId);
    if (job !== null && (job.progress?.inputs_done ?? Number.POSITIVE_INFINITY) > this.ended.length) {
      await this.#noteEnded();
    }
    this.job = job;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async #noteEnded(): Promise<void> {
    for (const index of await this.#source.endedInputs(this.jobId)) {
      if (this.#known.has(index)) continue;
      this.#known.add(index);
      this.ended.push(index);
    }
  }
}

function hasEnded(job: JobSnapshot | null): boolean {
  return job?.timing.finished_at !== undefined;
}

/** Settles with the promise, or when the signal is aborted. */
async function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) return;
  const abort = () => resolve();
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
