import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '#errors/app-error.ts';
import type { Log } from '#telemetry/logger.ts';
import type { RunReport } from '#telemetry/run-report.ts';
import type { WorkerPool } from '#workers/worker-pool.ts';
import { type InputAttempt, NO_PROGRESS, NOTHING_RUNNING, type RunningProgress } from '../job.ts';
import { failedEntry } from '../result-entries.ts';
import type { JobRequest, LeasedInput } from '../store/job-store.ts';
import { ExtraSlots, MAX_AWAITING_SIGNATURE, MAX_EXTRA_SLOTS, QueueCapacity, type QueueLimits } from './input-queue.ts';
import { InputRuns } from './input-runs.ts';
import { OutputPathRegistries } from './output-path-registry.ts';
import {
  type EnqueuedJob,
  type JobEngine,
  Persistence,
  type RunEnd,
  type WorkHost,
  type WorkItem,
  type WorkSource,
} from './work-source.ts';

/** The environment of a dispatcher. */
export interface DispatcherOptions {
  readonly pool: WorkerPool;
  readonly log: Log;
  readonly limits: QueueLimits;
  /** Bound on inputs that run at once, of all jobs together; 0 when this node runs none. */
  readonly maxRunningInputs: number;
  /** Bound on waiting inputs (`worker.queue_capacity`). */
  readonly capacity: number;
  /** Removes the staged outputs of an attempt whose worker may be gone. Never rejects. */
  readonly clearStagings: (attempt: InputAttempt) => Promise<void>;
  readonly runEnded: (report: RunReport) => void;
  /** Called when the end of a job is committed that this process brought about. */
  readonly jobFinished: (jobId: string) => void;
  /** Called when a job has finished in any process; for one that finished here perhaps as well. */
  readonly jobFinishedElsewhere: (jobId: string) => void;
}

/**
 * Runs queued inputs in workers, each under a lease, from the start to the recorded end. The work source
 * decides which input is next. Everything that is held in memory can be rebuilt from the store.
 */
export class Dispatcher implements WorkHost {
  readonly persistence: Persistence;
  readonly #options: DispatcherOptions;
  readonly #source: WorkSource;
  readonly #capacity: QueueCapacity;
  readonly #extraSlots = new ExtraSlots(() => this.#offerExtraSlot());
  readonly #requests: RequestCache;
  readonly #outputPaths: OutputPathRegistries;
  readonly #runs: InputRuns;
  readonly #work = new Set<Promise<unknown>>();
  readonly #draining = new AbortController();
  readonly #stopping = new AbortController();
  /** Slots in use. */
  #occupied = 0;
  /** Inputs that wait for a signature, and have no slot. */
  #awaitingSignature = 0;

  constructor(options: DispatcherOptions, { store, createSource }: JobEngine) {
    const { pool, log, clearStagings, runEnded } = options;
    this.#options = options;
    this.persistence = new Persistence(log, this.#stopping.signal);
    this.#capacity = new QueueCapacity(options.capacity);
    this.#requests = new RequestCache((jobId) => store.requestOfJob(jobId));
    this.#source = createSource(this);
    const pathsOfJob = (jobId: string) => this.#source.pathsOfJob(jobId);
    this.#outputPaths = new OutputPathRegistries(pathsOfJob, log, this.#source.isClustered ? store : null);
    this.#runs = new InputRuns({
      pool,
      log,
      clearStagings,
      outputPaths: this.#outputPaths,
      source: this.#source,
      runEnded,
    });
  }

  /** Starts what was queued before. Throws when the store cannot be used. */
  begin(): Promise<void> {
    return this.#source.begin();
  }

  /** False when the last write to the store failed. */
  get storeWorks(): boolean {
    return this.persistence.works;
  }

  /** The number of waiting inputs, as far as this process knows. */
  get waiting(): number {
    return this.#capacity.waiting;
  }

  /** The number of inputs that run here, or are about to. */
  get running(): number {
    return this.#occupied;
  }

  get limits(): QueueLimits {
    return this.#options.limits;
  }

  get maxRunningInputs(): number {
    return this.#options.maxRunningInputs;
  }

  get freeSlots(): number {
    return this.#options.maxRunningInputs - this.#occupied;
  }

  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /**
   * Reserves capacity of the queue for inputs that are about to be recorded. Throws `QUEUE_FULL`, or `JOB_EXCEEDS_QUEUE` when
   * they could never fit.
   */
  reserveCapacity(count: number): void {
    this.#capacity.reserve(count);
  }

  /** Releases capacity that was reserved for inputs which were not recorded. */
  releaseCapacity(count: number): void {
    this.#capacity.release(count);
  }

  requeue(job: EnqueuedJob): void {
    this.#capacity.add(job.count);
    this.enqueue(job);
  }

  correctWaiting(count: number): void {
    this.#capacity.correct(count);
  }

  /** Queues inputs that are recorded, and for which capacity is reserved. */
  enqueue(job: EnqueuedJob): void {
    this.#source.enqueue(job);
    this.#awaitExtraSlot();
  }

  /** Pauses a job that is about to be cancelled: none of its inputs starts until the returned function, `resume`, is called. */
  pauseJob(jobId: string): () => void {
    return this.#source.pauseJob(jobId);
  }

  /**
   * Stops the inputs of a job that the store has as cancelled: none of them starts, and running ones are aborted and end as
   * cancelled. `jobFinished` says that the cancellation finished the job.
   */
  cancel(jobId: string, jobFinished: boolean): void {
    this.#capacity.release(this.#source.drop(jobId));
    this.#runs.cancel(jobId);
    if (jobFinished) this.jobFinished(jobId);
  }

  /** Returns the progress of the running inputs of a job together, as far as the store does not have it. */
  progressOf(jobId: string): RunningProgress {
    return this.#source.isClustered ? NOTHING_RUNNING : this.#runs.progressOf(jobId);
  }

  jobFinished(jobId: string): void {
    this.#outputPaths.forget(jobId);
    this.#options.jobFinished(jobId);
  }

  jobFinishedElsewhere(jobId: string): void {
    this.#options.jobFinishedElsewhere(jobId);
  }

  start(item: WorkItem): void {
    this.#occupied += 1;
    this.#runs.open(item.run);
    if (this.#stopping.signal.aborted) item.run.abort.abort(this.#stopping.signal.reason);
    this.#awaitExtraSlot();
    this.track(this.#process(item));
  }

  track(work: Promise<unknown>): void {
    const tracked: Promise<unknown> = work.finally(() => this.#work.delete(tracked));
    this.#work.add(tracked);
  }

  /** Starts nothing more, lets running inputs finish within the grace period, and queues the others again. */
  async stop(graceMs: number): Promise<void> {
    this.#draining.abort();
    this.#extraSlots.stop();
    const grace = new AbortController();
    const elapsed = sleep(graceMs, undefined, { signal: grace.signal }).catch(() => undefined);
    await Promise.race([this.#idle(), elapsed]);
    grace.abort();
    const reason = new Error('the service is stopping');
    this.#stopping.abort(reason);
    this.#runs.stop(reason);
    await this.#idle();
    await this.#source.stop();
  }

  async #idle(): Promise<void> {
    // A transaction that was under way may start inputs.
    do {
      await this.#source.idle();
      await Promise.all(this.#work);
    } while (this.#work.size > 0);
  }

  async #process(item: WorkItem): Promise<void> {
    const { run } = item;
    const [lease, request] = await Promise.all([this.#source.lease(item), item.request ?? this.#requestOf(run.jobId)]);
    this.#capacity.release(1);
    const release = this.#releaseOnce(item);
    const recording = lease && this.#source.record(item, lease, await this.#runInSlot(item, lease, request, release));
    // The slot is free before the end is committed, so that the start of the next input shares the commit.
    release();
    const end = await recording;
    this.#runs.close(run);
    if (!this.#runs.has(run.jobId)) {
      this.#requests.forget(run.jobId);
      this.#outputPaths.suspend(run.jobId);
    }
    if (end?.jobFinished) this.jobFinished(run.jobId);
  }

  /** Runs an input. `release` frees its slot where it waits for a signature. */
  async #runInSlot(
    item: WorkItem,
    lease: LeasedInput,
    request: JobRequest | null | undefined,
    release: () => void,
  ): Promise<RunEnd> {
    let isAwaiting = false;
    const awaitsSignature = () => {
      if (this.#awaitingSignature >= MAX_AWAITING_SIGNATURE) return;
      this.#awaitingSignature += 1;
      isAwaiting = true;
      release();
    };
    try {
      return await this.#run(item, lease, request, awaitsSignature);
    } finally {
      if (isAwaiting) this.#awaitingSignature -= 1;
    }
  }

  async #run(
    item: WorkItem,
    lease: LeasedInput,
    request: JobRequest | null | undefined,
    awaitsSignature: () => void,
  ): Promise<RunEnd> {
    if (request === null || (request === undefined && this.#stopping.signal.aborted)) return { type: 'stopped' };
    if (request === undefined) return requestUnreadable(lease);
    const end = await this.#runs.do(item.run, lease, request, awaitsSignature);
    if (end.type === 'finished' && end.entry.status === 'failed') await this.#outputPaths.release(lease);
    return end;
  }

  #requestOf(jobId: string): Promise<JobRequest | null | undefined> {
    return this.persistence.write(() => this.#requests.of(jobId));
  }

  #releaseOnce(item: WorkItem): () => void {
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#occupied -= 1;
      this.#extraSlots.freed();
      this.#source.release(item);
      this.#awaitExtraSlot();
    };
  }

  /** Offers an extra slot when all slots stay occupied while something may wait. */
  #awaitExtraSlot(): void {
    if (this.#isFull && this.#source.mayHaveQueued) this.#extraSlots.await();
  }

  #offerExtraSlot(): void {
    if (!this.#isFull) return;
    if (this.freeSlots > -MAX_EXTRA_SLOTS) this.#source.startExtra();
    this.#awaitExtraSlot();
  }

  get #isFull(): boolean {
    return !this.draining.aborted && this.maxRunningInputs > 0 && this.freeSlots <= 0;
  }
}

/**
 * Returns the end of a run whose request cannot be read for a defect: without the pauses of retries it would be
 * tried for ever.
 */
function requestUnreadable({ jobId, inputIndex }: LeasedInput): RunEnd {
  const entry = failedEntry(inputIndex, new AppError('INPUT_MET_BUG', { jobId, inputIndex }).toData());
  return { type: 'finished', entry, progress: NO_PROGRESS, transient: true, digest: null };
}

/** A request whose JSON is longer is read again for each input, so that many large ones do not fill the memory. */
const MAX_KEPT_CHARACTERS = 256 * 1024;

/** Caches the requests of running jobs, which their inputs share. */
class RequestCache {
  readonly #read: (jobId: string) => Promise<JobRequest | null>;
  readonly #kept = new Map<string, Promise<JobRequest | null>>();

  constructor(read: (jobId: string) => Promise<JobRequest | null>) {
    this.#read = read;
  }

  of(jobId: string): Promise<JobRequest | null> {
    const known = this.#kept.get(jobId);
    if (known !== undefined) return known;
    const reading = this.#read(jobId);
    this.#kept.set(jobId, reading);
    const forget = () => this.forget(jobId);
    reading.then((request) => (request !== null && sizeOf(request) <= MAX_KEPT_CHARACTERS) || forget(), forget);
    return reading;
  }

  /** Forgets the request of a job. To be called when the job runs no more. */
  forget(jobId: string): void {
    this.#kept.delete(jobId);
  }
}

function sizeOf({ outputJson, paramsJson }: JobRequest): number {
  return outputJson.length + paramsJson.length;
}
