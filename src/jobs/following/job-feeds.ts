import { raceAbort } from '#concurrency/race-abort.ts';
import { ThrottledQuery } from '#concurrency/throttled-query.ts';
import type { ListedJob } from '#contract/job-list.ts';
import type { JobScope } from '../caller.ts';
import type { JobEvent, JobSnapshot, ListEvent } from '../job.ts';
import { seenBy } from '../outages/waiting-for.ts';
import type { JobPage, JobStore } from '../store/job-store.ts';

/** The source of a feed. Each method may reject while the store cannot be reached. */
interface FeedSource extends Pick<JobStore, 'finishedInputs' | 'resultEntries'> {
  /** Returns a job as it is now. */
  find(jobId: string): Promise<JobSnapshot | null>;
}

/** The interval of polling a followed job, once for all its followers. Its end is reported at once. */
const POLL_INTERVAL_MS = 500;

/** Bound on the entries in one event. */
const MAX_ENTRIES = 500;

/**
 * Follows jobs, wherever they run. Compares the state of a job with what was sent last, at the
 * moment when the follower asks for more: a slow one skips steps of progress, and nothing is queued for it.
 */
export class JobFeed {
  readonly #source: FeedSource;
  readonly #intervalMs: number;
  readonly #watches = new Map<string, Watch>();

  constructor(source: FeedSource, intervalMs = POLL_INTERVAL_MS) {
    this.#source = source;
    this.#intervalMs = intervalMs;
  }

  /**
   * Returns the events of a job from now on, as somebody in the scope sees it; they end after `done`, when the signal is aborted, or
   * when the job is gone.
   */
  async *follow(jobId: string, signal: AbortSignal, scope: JobScope = {}): AsyncGenerator<JobEvent, void, void> {
    const watch = this.#enter(jobId);
    try {
      for await (const { type, job } of this.#eventsOf(watch, signal)) yield { type, job: seenBy(job, scope) };
    } finally {
      this.#leave(watch);
    }
  }

  /** Notifies those who follow a job that it has finished in this process. */
  finished(jobId: string): void {
    // A failed query is repeated in the next interval.
    this.#watches
      .get(jobId)
      ?.poll()
      .catch(() => undefined);
  }

  async *#eventsOf(watch: Watch, signal: AbortSignal): AsyncGenerator<JobEvent, void, void> {
    await watch.poll();
    // Of a finished job, `done` has everything.
    let sentCount = isFinished(watch.job) ? watch.finished.size : 0;
    let lastProgress = '';
    while (watch.job !== null && !signal.aborted) {
      // Taken before anything is waited for, so that no change falls in between.
      const changed = watch.changed;
      while (sentCount < watch.finished.size) {
        const indexes = [...watch.finished].slice(sentCount, sentCount + MAX_ENTRIES);
        sentCount += indexes.length;
        const resultsJson = await this.#source.resultEntries(watch.jobId, indexes);
        yield { type: 'input', job: { ...watch.job, resultsJson } };
      }
      if (isFinished(watch.job)) return yield { type: 'done', job: watch.job };
      const progress = JSON.stringify([watch.job.status, watch.job.progress, watch.job.waiting_for]);
      if (progress !== lastProgress) yield { type: 'progress', job: watch.job };
      lastProgress = progress;
      // An abort ends the loop; `changed` never rejects.
      await raceAbort(changed, signal).catch(() => undefined);
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

/** The last seen state of a job that somebody follows. */
class Watch {
  readonly jobId: string;
  followers = 0;
  /** Null where the job is gone. */
  job: JobSnapshot | null = null;
  /** Inputs that are finished, in the order in which that was found; it only grows. */
  readonly finished = new Set<number>();
  readonly #source: FeedSource;
  readonly #timer: NodeJS.Timeout;
  #changed = Promise.withResolvers<void>();
  #polling: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;

  constructor(jobId: string, source: FeedSource, intervalMs: number) {
    this.jobId = jobId;
    this.#source = source;
    // While the store cannot be reached nothing is sent; the next poll tries again.
    this.#timer = setInterval(() => void this.poll().catch(() => undefined), intervalMs).unref();
  }

  /** Settles after the next poll. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  /** Polls the job. A poll that is under way began before the change that the caller expects, so one more follows it. */
  poll(): Promise<void> {
    this.#next ??= this.#polling
      .catch(() => undefined)
      .then(() => {
        this.#next = null;
        this.#polling = this.#pollOnce();
        return this.#polling;
      });
    return this.#next;
  }

  end(): void {
    clearInterval(this.#timer);
  }

  async #pollOnce(): Promise<void> {
    // A finished job does not change.
    if (isFinished(this.job)) return;
    const job = await this.#source.find(this.jobId);
    if (job !== null && (job.progress?.inputs_done ?? Number.POSITIVE_INFINITY) > this.finished.size) {
      for (const index of await this.#source.finishedInputs(this.jobId)) this.finished.add(index);
    }
    this.job = job;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

function isFinished(job: JobSnapshot | null): boolean {
  return job?.timing.finished_at !== undefined;
}

/** Called when the job of a waiter is finished. */
type Notify = () => void;

/**
 * Lets callers wait until jobs are finished. Jobs that finish in this process are reported by `finished`; for jobs that
 * finish elsewhere the store is polled, once in an interval for all waiters together.
 */
export class CompletionWaiters {
  readonly #waiting = new Map<string, Set<Notify>>();
  readonly #finishedAmong: (jobIds: readonly string[]) => Promise<readonly string[]>;
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(finishedAmong: (jobIds: readonly string[]) => Promise<readonly string[]>, intervalMs: number) {
    this.#finishedAmong = finishedAmong;
    this.#intervalMs = intervalMs;
  }

  /**
   * Resolves with true when the job is finished, as one is that is not known; with false after the timeout. Rejects when the signal is
   * aborted.
   */
  async wait(jobId: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const notify = () => resolve(true);
    const timer = setTimeout(resolve, timeoutMs, false);
    // The wait begins before the query, so that the job cannot finish unseen between them.
    this.#add(jobId, notify);
    try {
      const [finished] = await this.#finishedAmong([jobId]);
      return finished !== undefined || (await raceAbort(promise, signal));
    } finally {
      this.#remove(jobId, notify);
      clearTimeout(timer);
    }
  }

  /** Notifies those who follow a job that it has finished in this process. */
  finished(jobId: string): void {
    for (const notify of [...(this.#waiting.get(jobId) ?? [])]) notify();
  }

  #add(jobId: string, notify: Notify): void {
    this.#waiting.set(jobId, (this.#waiting.get(jobId) ?? new Set()).add(notify));
    this.#timer ??= setTimeout(() => void this.#poll(), this.#intervalMs).unref();
  }

  #remove(jobId: string, notify: Notify): void {
    const waiters = this.#waiting.get(jobId);
    waiters?.delete(notify);
    if (waiters?.size === 0) this.#waiting.delete(jobId);
  }

  async #poll(): Promise<void> {
    const jobIds = [...this.#waiting.keys()];
    // A store that cannot be reached is polled again in the next interval.
    const finished = jobIds.length === 0 ? [] : await this.#finishedAmong(jobIds).catch(() => []);
    for (const jobId of finished) this.finished(jobId);
    this.#timer = undefined;
    if (this.#waiting.size > 0) this.#timer = setTimeout(() => void this.#poll(), this.#intervalMs).unref();
  }
}

/** The interval of polling for changes of the list, once for all followers. */
const LIST_POLL_INTERVAL_MS = 1000;

/** Changes of the last seconds are read again, because the clocks of nodes differ, and a commit takes a while. */
const OVERLAP_MS = 10_000;

/**
 * Bound on the jobs of one poll of the list, and on those that wait for a follower. Beyond it a follower is told to
 * list jobs anew.
 */
const MAX_CHANGED_JOBS = 500;

/**
 * Follows the list of jobs. Changes are collected for a follower until it asks for more, so that a slow one
 * gets fewer events.
 */
export class ListFeed {
  readonly #query: ThrottledQuery<JobPage>;
  readonly #intervalMs: number;
  readonly #followers = new Set<Follower>();
  /** The jobs of the last poll, each with its JSON. */
  #seen: ReadonlyMap<string, string> = new Map();
  #polledAtMs = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `recentJobs` may reject while the store cannot be reached. */
  constructor(recentJobs: JobStore['recentJobs'], intervalMs = LIST_POLL_INTERVAL_MS) {
    this.#intervalMs = intervalMs;
    this.#query = new ThrottledQuery(() => this.#readRecent(recentJobs));
  }

  /**
   * Returns the changes of the jobs in a scope, as somebody in it sees them, from now on until the signal is aborted. The first ones
   * may be older.
   */
  async *follow(scope: JobScope, signal: AbortSignal): AsyncGenerator<ListEvent, void, void> {
    const follower = new Follower(scope);
    this.#enter(follower);
    try {
      while (!signal.aborted) {
        const event = follower.take();
        if (event !== null) yield event;
        // An abort ends the loop; `changed` never rejects.
        else await raceAbort(follower.changed, signal).catch(() => undefined);
      }
    } finally {
      this.#leave(follower);
    }
  }

  #enter(follower: Follower): void {
    this.#followers.add(follower);
    this.#timer ??= setInterval(() => void this.#poll(), this.#intervalMs).unref();
  }

  #leave(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.#followers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#seen = new Map();
    this.#polledAtMs = 0;
  }

  /**
   * Polls for changes. A failed query is repeated in the next interval, for the time since the last one that succeeded.
   */
  async #poll(): Promise<void> {
    const recent = await this.#query.freshValue().catch(() => undefined);
    if (recent === undefined || this.#followers.size === 0) return;
    const texts = new Map(recent.jobs.map((job) => [job.job_id, JSON.stringify(job)]));
    const changed = recent.jobs.filter(({ job_id: id }) => texts.get(id) !== this.#seen.get(id));
    this.#seen = texts;
    for (const follower of this.#followers) follower.add(changed, recent.more);
  }

  async #readRecent(recentJobs: JobStore['recentJobs']): Promise<JobPage> {
    const nowMs = Date.now();
    const since = new Date((this.#polledAtMs || nowMs) - OVERLAP_MS);
    const recent = await recentJobs(since, MAX_CHANGED_JOBS);
    this.#polledAtMs = nowMs;
    return recent;
  }
}

/** Changes that a follower has not been told yet. */
class Follower {
  readonly #scope: JobScope;
  readonly #jobs = new Map<string, ListedJob>();
  #hasMore = false;
  #changed = Promise.withResolvers<void>();

  constructor(scope: JobScope) {
    this.#scope = scope;
  }

  /** Settles with the next change. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  add(jobs: readonly ListedJob[], hasMore: boolean): void {
    const { caller } = this.#scope;
    for (const job of jobs)
      if (caller === undefined || job.caller === caller) this.#jobs.set(job.job_id, seenBy(job, this.#scope));
    this.#hasMore ||= hasMore || this.#jobs.size > MAX_CHANGED_JOBS;
    if (!this.#hasMore && this.#jobs.size === 0) return;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  take(): ListEvent | null {
    const jobs = [...this.#jobs.values()];
    const hasMore = this.#hasMore;
    this.#jobs.clear();
    this.#hasMore = false;
    if (hasMore) return { type: 'reload' };
    return jobs.length === 0 ? null : { type: 'jobs', jobs };
  }
}
