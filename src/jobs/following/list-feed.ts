import { raceAbort } from '#concurrency/race-abort.ts';
import { ThrottledQuery } from '#concurrency/throttled-query.ts';
import type { ListedJob } from '#contract/job-list.ts';
import type { JobScope } from '../caller.ts';
import type { ListEvent } from '../job.ts';

/** The interval of polling for changes, once for all followers. */
const POLL_INTERVAL_MS = 1000;

/** Changes of the last seconds are read again, because the clocks of nodes differ, and a commit takes a while. */
const OVERLAP_MS = 10_000;

/** Bound on the jobs of one poll, and on those that wait for a follower. Beyond it a follower is told to list jobs anew. */
const MAX_CHANGED_JOBS = 500;

/**
 * Reads the jobs that were submitted or finished after a time, and those that run; `more` is true where there are more than the
 * limit. May reject while the store cannot be reached.
 */
export type RecentJobs = (since: Date, limit: number) => Promise<{ jobs: readonly ListedJob[]; more: boolean }>;

/** Follows the list of jobs. Changes are collected for a follower until it asks for more, so that a slow one gets fewer events. */
export class ListFeed {
  readonly #query: ThrottledQuery<{ jobs: readonly ListedJob[]; more: boolean }>;
  readonly #intervalMs: number;
  readonly #followers = new Set<Follower>();
  /** The jobs of the last poll, each with its JSON. */
  #seen: ReadonlyMap<string, string> = new Map();
  #polledAtMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(recentJobs: RecentJobs, intervalMs = POLL_INTERVAL_MS) {
    this.#intervalMs = intervalMs;
    this.#query = new ThrottledQuery(() => this.#readRecent(recentJobs));
  }

  /** The changes of the jobs in a scope from now on, until the signal is aborted. The first ones may be older. */
  async *follow({ caller }: JobScope, signal: AbortSignal): AsyncGenerator<ListEvent, void, void> {
    const follower = new Follower(caller);
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

  /** A failed query is repeated in the next interval, for the time since the last one that succeeded. */
  async #poll(): Promise<void> {
    const recent = await this.#query.freshValue().catch(() => undefined);
    if (recent === undefined || this.#followers.size === 0) return;
    const texts = new Map(recent.jobs.map((job) => [job.job_id, JSON.stringify(job)]));
    const changed = recent.jobs.filter(({ job_id: id }) => texts.get(id) !== this.#seen.get(id));
    this.#seen = texts;
    for (const follower of this.#followers) follower.add(changed, recent.more);
  }

  async #readRecent(recentJobs: RecentJobs): ReturnType<RecentJobs> {
    const nowMs = Date.now();
    const since = new Date((this.#polledAtMs || nowMs) - OVERLAP_MS);
    const recent = await recentJobs(since, MAX_CHANGED_JOBS);
    this.#polledAtMs = nowMs;
    return recent;
  }
}

/** Changes that a follower has not been told yet. */
class Follower {
  readonly #caller: string | undefined;
  readonly #jobs = new Map<string, ListedJob>();
  #hasMore = false;
  #changed = Promise.withResolvers<void>();

  constructor(caller: string | undefined) {
    this.#caller = caller;
  }

  /** Settles with the next change. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  add(jobs: readonly ListedJob[], hasMore: boolean): void {
    for (const job of jobs)
      if (this.#caller === undefined || job.caller === this.#caller) this.#jobs.set(job.job_id, job);
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
