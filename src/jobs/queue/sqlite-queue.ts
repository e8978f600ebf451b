import type { AppError } from '#errors/app-error.ts';
import type { ByteProgress } from '#operations/operation.ts';
import type { Log } from '#telemetry/logger.ts';
import type { JobScope } from '../caller.ts';
import { isSigner } from '../dependencies.ts';
import type { InputAttempt } from '../job.ts';
import type {
  Cancellation,
  FinishedInput,
  HandedIn,
  JobStore,
  KnownJob,
  LeasedInput,
  LeaseFilter,
  LeasePart,
  NewJob,
  ReleasedInput,
} from '../store/job-store.ts';
import { ANY_PRIORITIES, compareInputs, LeaseTurns, LOW_PRIORITY_INTERVAL } from '../store/priority.ts';
import { openSqlite, type SqliteStore } from '../store/sqlite/sqlite-job-store.ts';
import {
  engineOf,
  type JobEngine,
  type JobQueue,
  type LeaseRequest,
  type NewLeases,
  QueueEvents,
  type Renewal,
} from './job-queue.ts';

/** Inputs that are leased ahead in one transaction, of these some of low priority; and the bound on all of them. */
const LEASE_AHEAD = 32;
const LEASE_AHEAD_LOW = LEASE_AHEAD / LOW_PRIORITY_INTERVAL;
const MAX_LEASED_AHEAD = 64;
/** More are leased ahead when no more than this are left. */
const MIN_LEASED_AHEAD = 16;
/** Filters that are remembered: with another one, inputs are leased ahead once more. */
const MAX_SORTED_FILTERS = 8;

/**
 * Opens the embedded store in the data folder, for this process alone. Throws an AppError of the catalogue when it
 * cannot be used. `storeLost` is called when it cannot be used any more.
 */
export async function openSqliteEngine(
  dataDir: string,
  log: Log,
  storeLost?: (error: AppError) => void,
): Promise<JobEngine> {
  const store = await openSqlite(dataDir, storeLost);
  try {
    const recovered = await store.recoverLeases();
    log.info({ recovered_inputs: recovered.inputs, waiting_jobs: recovered.waitingJobs }, 'job store opened');
  } catch (error) {
    await store.close();
    throw error;
  }
  return engineOf(store, new SqliteQueue(store));
}

/**
 * The queue in the embedded database. Inputs are leased ahead, because a commit takes as long as a small file: then no worker
 * waits for the disk between two inputs. They stay in order: inputs that are submitted meanwhile are leased before these are given out.
 */
class SqliteQueue implements JobQueue {
  readonly isShared = false;
  /** As often as those who follow a job look at its progress. */
  readonly renewalIntervalMs = 500;
  readonly #store: JobStore;
  readonly #batched: JobStore;
  readonly #events = new QueueEvents();
  /** Inputs that are leased ahead, in order; and those of low priority, for every eighth lease. */
  readonly #ahead: LeasedInput[] = [];
  readonly #aheadLow: LeasedInput[] = [];
  /** Inputs that failed for a moment, each until its pause is over. */
  readonly #paused = new Map<InputAttempt, NodeJS.Timeout>();
  /** Jobs that are being cancelled, each once for each call. */
  readonly #cancelling = new Set<{ readonly jobId: string }>();
  #fetching: Promise<unknown> | null = null;
  /** Filters of queued inputs that do not precede those that are leased ahead. Inputs that all of them leave out may. */
  #sortedFor: readonly LeaseFilter[] = [];
  /** True while more inputs are queued than were leased ahead. */
  #hasMore = false;
  readonly #turns = new LeaseTurns();

  constructor(store: SqliteStore) {
    this.#store = store;
    this.#batched = store.batched();
  }

  get events(): ReadableStream {
    return this.#events.stream;
  }

  async submitJob(job: NewJob): Promise<KnownJob | null> {
    const known = await this.#store.submitJob(job);
    if (known === null) this.#announceWork();
    return known;
  }

  /** Cancels a job. Its inputs that are leased ahead must not start meanwhile: the store finishes them. */
  async cancelJob(jobId: string, scope?: JobScope): Promise<Cancellation | null> {
    // A caller cannot keep a job from starting that it may not see.
    if (scope?.caller !== undefined && (await this.#store.findJob(jobId, scope)) === null) return null;
    const cancelling = { jobId };
    this.#cancelling.add(cancelling);
    try {
      const cancellation = await this.#store.cancelJob(jobId, scope);
      // Inputs that were leased ahead just before are in the lists by then.
      await this.#fetching;
      if (cancellation?.changed) {
        for (const list of [this.#ahead, this.#aheadLow]) removeWhere(list, (input) => input.jobId === jobId);
        this.#events.push({ type: 'cancelled', jobId });
      }
      return cancellation;
    } finally {
      this.#cancelling.delete(cancelling);
      this.#events.push({ type: 'work' });
    }
  }

  async lease(request: LeaseRequest): Promise<NewLeases> {
    await this.#putBack(request);
    while (this.#mustFetch(request) && this.#fetching !== null) await this.#fetching;
    const mustFetch = this.#mustFetch(request);
    if (mustFetch) await this.#fetch(request);
    const inputs = this.#take(request);
    // Their attempt numbers are on the disk. If the start is not, an exit of the service is not counted.
    if (inputs.length > 0) this.#batched.startInputs(inputs).catch(() => undefined);
    // The others are leased by the next call, so that these do not wait for the disk.
    if (inputs.length < request.count && !mustFetch) this.#events.push({ type: 'work' });
    if (this.#hasMore && this.#fetching === null && this.#readyCount(request) <= MIN_LEASED_AHEAD) {
      this.#fetch(request).then(
        () => this.#events.push({ type: 'work' }),
        // The next lease reports that the database cannot be used.
        () => undefined,
      );
    }
    return { inputs, finishedJobs: [] };
  }

  /** Leases of the embedded store last until its process exits. */
  async renew(running: readonly (InputAttempt & ByteProgress)[]): Promise<Renewal> {
    if (running.length === 0) return { lost: [], cancelledJobs: [] };
    await this.#batched.recordProgress(running);
    const jobIds = new Set(running.map(({ jobId }) => jobId));
    return { lost: [], cancelledJobs: await this.#store.cancelledAmong([...jobIds]) };
  }

  async mayCommit(): Promise<boolean> {
    return true;
  }

  /** Delays results, to share commits, while others of the job are leased: only the last one is waited for. */
  finish(result: FinishedInput): Promise<HandedIn> {
    const isWaitedFor = !this.#ahead.some(({ jobId }) => jobId === result.lease.jobId);
    return (isWaitedFor ? this.#store : this.#batched).finishInput(result);
  }

  async release(input: ReleasedInput): Promise<HandedIn> {
    const handedIn = await this.#store.releaseInput(input);
    if ('retryAt' in input && input.retryAt !== null) this.#pause(input.lease, input.retryAt);
    this.#announceWork();
    return handedIn;
  }

  async close(): Promise<void> {
    await this.#fetching;
    for (const timer of this.#paused.values()) clearTimeout(timer);
    const leases = [...this.#ahead.splice(0), ...this.#aheadLow.splice(0), ...this.#paused.keys()];
    // Where that fails, the next start recovers them.
    await this.#requeue(leases).catch(() => undefined);
    this.#events.close();
  }

  #announceWork(): void {
    this.#sortedFor = [];
    this.#events.push({ type: 'work' });
  }

  /** Queues an input again at a time. It is late by then where its job was cancelled. */
  #pause(lease: InputAttempt, retryAt: number): void {
    const requeue = async () => {
      this.#paused.delete(lease);
      // Where that fails, the pause begins again.
      await this.#requeue([lease]).then(
        () => this.#announceWork(),
        () => this.#pause(lease, Date.now() + RETRY_INTERVAL_MS),
      );
    };
    this.#paused.set(lease, setTimeout(requeue, Math.max(0, retryAt - Date.now())));
  }

  /** Queues inputs again that are leased ahead, and that a filter leaves out for what they need. */
  async #putBack(filter: LeaseFilter): Promise<void> {
    const heldUp = [...this.#ahead, ...this.#aheadLow].filter((input) => isHeldUp(input, filter));
    if (heldUp.length === 0) return;
    for (const list of [this.#ahead, this.#aheadLow]) removeWhere(list, (input) => heldUp.includes(input));
    await this.#requeue(heldUp);
  }

  async #requeue(leases: readonly InputAttempt[]): Promise<void> {
    await Promise.all(leases.map((lease) => this.#store.releaseInput({ lease, reason: 'stopped' })));
  }

  #mustFetch(request: LeaseRequest): boolean {
    const mayPrecede = this.#sortedFor.every((sorted) => admitsMore(request, sorted));
    const maySort = mayPrecede && this.#ahead.length < MAX_LEASED_AHEAD;
    return maySort || this.#readyCount(request) === 0;
  }

  /** Leases inputs ahead: at least as many as are asked for, where none is ready. */
  #fetch(request: LeaseRequest): Promise<void> {
    const fetched = this.#fetchNow(request);
    const fetching = fetched
      .catch(() => undefined)
      .then(() => {
        if (this.#fetching === fetching) this.#fetching = null;
      });
    this.#fetching = fetching;
    return fetched;
  }

  async #fetchNow(request: LeaseRequest): Promise<void> {
    const { count: requested, ...filter } = request;
    this.#sortedFor = [filter, ...this.#sortedFor].slice(0, MAX_SORTED_FILTERS);
    const needed = this.#readyCount(request) === 0 ? requested : 0;
    const count = Math.max(needed, Math.min(LEASE_AHEAD, MAX_LEASED_AHEAD - this.#ahead.length));
    const parts: readonly LeasePart[] = [
      { count, maxPriorities: ANY_PRIORITIES },
      { count: LEASE_AHEAD_LOW - this.#aheadLow.length, maxPriorities: this.#turns.low },
    ];
    const [next = [], low = []] = await this.#store.leaseInputs(parts, filter).catch((error) => {
      this.#sortedFor = [];
      throw error;
    });
    this.#hasMore = next.length === count;
    if (this.#hasMore && this.#ahead.some((input) => precedes(next.at(-1), input))) this.#sortedFor = [];
    this.#ahead.push(...next);
    this.#ahead.sort(compareInputs);
    this.#aheadLow.push(...low);
  }

  /** Takes inputs that are leased ahead. */
  #take(request: LeaseRequest): readonly LeasedInput[] {
    const taken: LeasedInput[] = [];
    while (taken.length < request.count) {
      const lists =
        this.#turns.next() === ANY_PRIORITIES ? [this.#ahead, this.#aheadLow] : [this.#aheadLow, this.#ahead];
      const list = lists.find((inputs) => inputs.some((input) => this.#mayTake(input, request)));
      if (list === undefined) break;
      const index = list.findIndex((input) => this.#mayTake(input, request));
      taken.push(...list.splice(index, 1));
    }
    return taken;
  }

  #readyCount(request: LeaseRequest): number {
    return [...this.#ahead, ...this.#aheadLow].filter((input) => this.#mayTake(input, request)).length;
  }

  #mayTake(input: LeasedInput, filter: LeaseFilter): boolean {
    const { jobId, caller } = input;
    const { onlyJobs, withoutJobs, withoutCallers } = filter;
    if (onlyJobs !== null && !onlyJobs.includes(jobId)) return false;
    if (isHeldUp(input, filter)) return false;
    if (withoutJobs.includes(jobId) || (caller !== null && withoutCallers.includes(caller))) return false;
    return ![...this.#cancelling].some((cancelling) => cancelling.jobId === jobId);
  }
}

/** Tells whether an input is left out because of what it needs: see `LeaseFilter`. */
function isHeldUp({ needs, waiting }: LeasedInput, filter: LeaseFilter): boolean {
  const { withoutDependencies, overdueBefore, onlySigners } = filter;
  if (onlySigners !== null && needs.some((id) => isSigner(id) && !onlySigners.includes(id))) return true;
  if (waiting !== null && waiting.since < overdueBefore) return false;
  return needs.some((dependency) => withoutDependencies.includes(dependency));
}

/** Returns true where a filter takes inputs that another one leaves out. */
function admitsMore(filter: LeaseFilter, other: LeaseFilter): boolean {
  const isOther = (jobId: string): boolean => other.onlyJobs?.includes(jobId) === false;
  return (
    (other.onlyJobs !== null && (filter.onlyJobs === null || filter.onlyJobs.some(isOther))) ||
    other.withoutJobs.some((jobId) => !filter.withoutJobs.includes(jobId)) ||
    other.withoutCallers.some((caller) => !filter.withoutCallers.includes(caller)) ||
    other.withoutDependencies.some((dependency) => !filter.withoutDependencies.includes(dependency)) ||
    (other.onlySigners !== null && filter.onlySigners?.every((id) => other.onlySigners?.includes(id)) !== true)
  );
}

/** Returns true also when there is no input that could tell. */
function precedes(input: LeasedInput | undefined, other: LeasedInput): boolean {
  return input === undefined || compareInputs(input, other) < 0;
}

/** The pause before an input is queued again after the store could not be written, in milliseconds. */
const RETRY_INTERVAL_MS = 1_000;

function removeWhere(list: LeasedInput[], matches: (input: LeasedInput) => boolean): void {
  for (let index = list.length - 1; index >= 0; index -= 1) {
    const input = list[index];
    if (input !== undefined && matches(input)) list.splice(index, 1);
  }
}
