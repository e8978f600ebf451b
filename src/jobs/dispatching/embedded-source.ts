import { setTimeout as sleep } from 'node:timers/promises';
import type { AppError, AppErrorData } from '#errors/app-error.ts';
import type { Log } from '#telemetry/logger.ts';
import type { InputAttempt } from '../job.ts';
import type { InputEnd, JobPaths, JobStore, LeasedInput } from '../store/job-store.ts';
import { openSqlite } from '../store/sqlite/sqlite-job-store.ts';
import { InputQueue, type StartedInput } from './input-queue.ts';
import { retryPauseMs } from './input-runs.ts';
import type { EnqueuedJob, JobEngine, WorkHost, WorkItem, WorkSource } from './work-source.ts';
import { InputRun, type RunEnd } from './work-source.ts';

/** Bound on prefetched inputs, of all jobs together. */
const MAX_PREFETCHED = 256;

/**
 * Opens the embedded store in the data folder, for this process alone. Throws an AppError of the catalogue when it
 * cannot be used. `storeLost` is called when it cannot be used any more.
 */
export async function openEmbeddedEngine(
  dataDir: string,
  log: Log,
  storeLost?: (error: AppError) => void,
): Promise<JobEngine> {
  const store = await openSqlite(dataDir, storeLost);
  return {
    store,
    createSource: (host) => new EmbeddedSource(store, host, log),
    close: () => store.close(),
  };
}

/** An input that this source started. */
interface EmbeddedItem extends WorkItem {
  readonly job: StartedInput;
}

/** Decides in memory which input is next; the queue is made from the store when the service starts. */
class EmbeddedSource implements WorkSource<EmbeddedItem> {
  readonly isClustered = false;
  readonly #store: JobStore;
  readonly #batched: JobStore;
  readonly #host: WorkHost;
  readonly #log: Log;
  readonly #queue: InputQueue;
  readonly #prefetch = new InputPrefetch(MAX_PREFETCHED);
  /** Jobs that are being cancelled; each promise resolves when its job resumes. */
  readonly #paused = new Map<string, Promise<void>>();

  constructor(store: JobStore, host: WorkHost, log: Log) {
    this.#store = store;
    this.#batched = store.batched();
    this.#host = host;
    this.#log = log;
    this.#queue = new InputQueue(host.limits);
  }

  get mayHaveQueued(): boolean {
    return this.#queue.hasQueued;
  }

  async begin(): Promise<void> {
    const recovered = await this.#store.recoverLeases();
    const queued = await this.#store.queuedJobs();
    this.#log.info({ recovered_inputs: recovered.length, waiting_jobs: queued.length }, 'job store opened');
    for (const { jobId, sync, waiting, caller } of queued) this.#host.requeue({ jobId, sync, count: waiting, caller });
  }

  enqueue({ jobId, sync, count, caller }: EnqueuedJob): void {
    this.#queue.add(jobId, sync, count, caller);
    this.#startWhatMay();
  }

  startExtra(): void {
    this.#start(this.#queue.startOfIdleJob());
  }

  /**
   * Returns the lease of an item. A prefetched input starts before its start is written: its attempt number is on
   * the disk already.
   */
  async lease(item: EmbeddedItem): Promise<LeasedInput | undefined> {
    const { jobId } = item.job;
    for (;;) {
      // While the job is being cancelled, the store may have the input as cancelled already.
      for (let pause = this.#paused.get(jobId); pause !== undefined; pause = this.#paused.get(jobId)) await pause;
      const prefetched = this.#prefetch.take(jobId);
      if (prefetched !== undefined) {
        this.#host.track(this.#host.persistence.write(() => this.#batched.startReservedInput(prefetched)));
        if (this.#prefetch.isLow(jobId) && this.#queue.waitingOf(jobId) > 0) this.#host.track(this.#fetch(jobId, 0));
        return prefetched;
      }
      const fetching = this.#prefetch.fetching(jobId);
      if (fetching === undefined) return (await this.#fetch(jobId, 1))[0];
      await fetching;
    }
  }

  /** Leases of the embedded store last until its process exits. */
  async mayCommit(): Promise<AppErrorData | undefined> {
    return undefined;
  }

  async record(item: EmbeddedItem, lease: LeasedInput, end: RunEnd): Promise<InputEnd | undefined> {
    const recorded = await this.#write(item.run, lease, end);
    const { jobId, sync, caller } = item.job;
    if (recorded?.input === 'queued') this.#host.requeue({ jobId, sync, count: 1, caller });
    return recorded;
  }

  release({ job }: EmbeddedItem): void {
    this.#queue.end(job.jobId);
    this.#startWhatMay();
  }

  pathsOfJob(jobId: string): Promise<JobPaths> {
    return this.#store.pathsOfJob(jobId);
  }

  pauseJob(jobId: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#paused.set(jobId, promise);
    return () => {
      if (this.#paused.get(jobId) === promise) this.#paused.delete(jobId);
      resolve();
    };
  }

  drop(jobId: string): number {
    this.#prefetch.drop(jobId);
    return this.#queue.drop(jobId);
  }

  /** Resolves at once: the dispatcher tracks the background work. */
  idle(): Promise<void> {
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    const { persistence } = this.#host;
    const unused = this.#prefetch.takeAll();
    await Promise.all(unused.map((lease) => persistence.write(() => this.#store.requeueInput(lease))));
  }

  #startWhatMay(): void {
    while (!this.#host.draining.aborted && this.#host.freeSlots > 0) {
      if (!this.#start(this.#queue.start())) return;
    }
  }

  #start(job: StartedInput | undefined): boolean {
    if (job === undefined) return false;
    const item: EmbeddedItem = { job, run: new InputRun(job.jobId), request: null };
    this.#host.start(item);
    return true;
  }

  /** Leases `count` inputs to be started now, which it returns, and prefetches others in the same transaction. */
  async #fetch(jobId: string, count: number): Promise<readonly LeasedInput[]> {
    const reserve = this.#prefetch.expect(jobId, this.#queue.waitingOf(jobId));
    const write = () => this.#store.leaseInputs(jobId, { start: count, reserve });
    const leased = count + reserve === 0 ? [] : ((await this.#host.persistence.write(write)) ?? []);
    this.#prefetch.put(jobId, leased.slice(count));
    return leased.slice(0, count);
  }

  #write(run: InputRun, lease: LeasedInput, end: RunEnd): Promise<InputEnd | undefined> {
    const { persistence } = this.#host;
    switch (end.type) {
      case 'stopped':
        return persistence.write(() => this.#store.requeueInput(lease));
      case 'process-exited':
        return persistence.write(() => this.#store.recordProcessExit(lease, end.exitCause));
      case 'finished': {
        const pauseMs = retryPauseMs(lease, end);
        if (pauseMs !== null) return this.#retryLater(run, lease, pauseMs);
        // Nobody can tell when an input finished except the last of its job, which finishes the job.
        const store = this.#queue.waitingOf(lease.jobId) > 0 ? this.#batched : this.#store;
        return persistence.write(() => store.finishInput(lease, end.entry, end.progress, end.digest));
      }
    }
  }

  /** Queues an input again after a pause, which ends early when the service stops or the job is cancelled. */
  async #retryLater(run: InputRun, lease: InputAttempt, pauseMs: number): Promise<InputEnd | undefined> {
    const { persistence, draining } = this.#host;
    this.#log.info({ job_id: lease.jobId, input_index: lease.inputIndex, pause_ms: pauseMs }, 'input is tried again');
    await persistence.write(() => this.#store.recordTransientFailure(lease));
    const signal = AbortSignal.any([draining, run.abort.signal]);
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    return persistence.write(() => this.#store.requeueInput(lease));
  }
}

/** Bound on prefetched inputs of one job: enough that a group of them shares one transaction. */
const MAX_PER_JOB = 48;
/** More are prefetched when no more than this are left. */
const LOW_PER_JOB = 16;

interface JobPrefetch {
  readonly inputs: LeasedInput[];
  /** Capacity that is reserved for a fetch that is under way. */
  reserved: number;
  /** Settles when that fetch is done. */
  fetching: PromiseWithResolvers<void> | null;
}

/**
 * Prefetches inputs by job: they are leased ahead of their turn, so that no worker waits for the disk between two
 * inputs. Whose turn it is stays undecided until then, so prefetching does not affect fairness.
 */
class InputPrefetch {
  readonly #byJob = new Map<string, JobPrefetch>();
  readonly #limit: number;
  #size = 0;

  /** `limit`: inputs of all jobs together. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Settles when the fetch is done that is under way for a job; undefined when there is none. */
  fetching(jobId: string): Promise<void> | undefined {
    return this.#byJob.get(jobId)?.fetching?.promise;
  }

  /** Returns true when so few inputs of a job are left that more should be fetched. */
  isLow(jobId: string): boolean {
    const prefetch = this.#byJob.get(jobId);
    return prefetch === undefined || (prefetch.fetching === null && prefetch.inputs.length <= LOW_PER_JOB);
  }

  /**
   * Begins a fetch of inputs of a job, of which `waiting` wait, prefetched ones included; returns the number of inputs to
   * lease ahead. `put` is to follow, whatever comes of it.
   */
  expect(jobId: string, waiting: number): number {
    const prefetch = this.#byJob.get(jobId) ?? { inputs: [], reserved: 0, fetching: null };
    this.#byJob.set(jobId, prefetch);
    const wanted = Math.min(waiting, MAX_PER_JOB) - prefetch.inputs.length;
    prefetch.reserved = Math.max(0, Math.min(wanted, this.#limit - this.#size));
    prefetch.fetching = Promise.withResolvers();
    this.#size += prefetch.reserved;
    return prefetch.reserved;
  }

  /** Adds leased inputs, and finishes the fetch. Does nothing for a job that was dropped meanwhile. */
  put(jobId: string, leased: readonly LeasedInput[]): void {
    const prefetch = this.#byJob.get(jobId);
    if (prefetch === undefined) return;
    this.#size += leased.length - prefetch.reserved;
    prefetch.reserved = 0;
    prefetch.inputs.push(...leased);
    prefetch.fetching?.resolve();
    prefetch.fetching = null;
    this.#forgetEmpty(jobId, prefetch);
  }

  /** Takes the next input of a job; undefined when none is prefetched. */
  take(jobId: string): LeasedInput | undefined {
    const prefetch = this.#byJob.get(jobId);
    const input = prefetch?.inputs.shift();
    if (input !== undefined) this.#size -= 1;
    if (prefetch !== undefined) this.#forgetEmpty(jobId, prefetch);
    return input;
  }

  /** Forgets a job with its prefetched inputs, and ignores a fetch that is under way. */
  drop(jobId: string): void {
    const prefetch = this.#byJob.get(jobId);
    if (prefetch === undefined) return;
    this.#size -= prefetch.inputs.length + prefetch.reserved;
    this.#byJob.delete(jobId);
    prefetch.fetching?.resolve();
  }

  /** Takes all inputs of all jobs. */
  takeAll(): LeasedInput[] {
    const all = [...this.#byJob.values()].flatMap(({ inputs }) => inputs);
    for (const jobId of [...this.#byJob.keys()]) this.drop(jobId);
    return all;
  }

  #forgetEmpty(jobId: string, { inputs, fetching }: JobPrefetch): void {
    if (inputs.length === 0 && fetching === null) this.#byJob.delete(jobId);
  }
}
