import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { Dispatcher } from './dispatcher.ts';
import { EndWaiters } from './end-waiters.ts';
import type { Claim, JobSnapshot, Submission } from './job.ts';
import { JobIds } from './job-id.ts';
import type { Log } from './log.ts';
import { JobStore } from './store/job-store.ts';
import { openSqlite } from './store/sqlite/open-sqlite.ts';
import type { WaitingJob } from './store/unfinished-jobs.ts';
import { WorkerPool } from './worker-pool.ts';
import type { WorkerBounds } from './worker-process.ts';

/** Jobs whose time is over are deleted so often. */
const PRUNE_INTERVAL_MS = 60 * 60 * 1000;

/** The store counts as out of reach when it does not answer in this time. */
const HEALTH_BOUND_MS = 5_000;

const HOUR_MS = 60 * 60 * 1000;

export interface JobsOptions {
  readonly config: Config;
  /** The module that calls `runInputWorker`. */
  readonly workerEntry: URL;
  readonly log: Log;
  /** Inputs that run at once, of all jobs together; the number of cores unless given. */
  readonly maxRunningInputs?: number;
  readonly workerBounds?: Partial<WorkerBounds>;
  /**
   * Removes what claims left behind whose worker is gone: one claim's, or all there is when the service starts and
   * holds the data folder.
   */
  readonly clearStagings?: (claim?: Claim) => Promise<void>;
}

/** What there is while the service runs. */
interface Engine {
  readonly store: JobStore;
  readonly pool: WorkerPool;
  readonly dispatcher: Dispatcher;
  readonly waiters: EndWaiters;
  readonly pruning: NodeJS.Timeout;
}

/**
 * The jobs of the service: takes them, has their inputs done, and tells how they are. What `submit` resolved with is
 * on the disk and will be done, whatever happens to the process.
 */
export class Jobs {
  readonly #options: JobsOptions;
  readonly #ids = new JobIds();
  #engine: Engine | null = null;
  #stopping = false;

  constructor(options: JobsOptions) {
    this.#options = options;
  }

  /**
   * Opens the store, takes up what was running or waiting when the service last ended, and begins. Rejects with an
   * AppError where the store cannot be used: held by another process, damaged, of a newer release, on a full disk.
   */
  async start(): Promise<void> {
    assert(this.#engine === null, 'jobs are started once');
    const { config, log } = this.#options;
    const store = new JobStore(await openSqlite(config.jobs.data_dir));
    try {
      await this.#clearStagings();
      const recovered = await store.recover();
      const waiting = await store.waitingJobs();
      log.info({ recovered_inputs: recovered.length, waiting_jobs: waiting.length }, 'job store opened');
      this.#engine = this.#assemble(store, waiting);
    } catch (error) {
      await store.close();
      throw error;
    }
    void this.#prune(store);
  }

  /** Records a job; from then on it is certain to be done. Throws QUEUE_FULL where too many inputs wait. */
  async submit(submission: Submission): Promise<{ job_id: string; status: 'queued' }> {
    if (this.#stopping) throw new AppError('SERVICE_STOPPING', {});
    const { store, dispatcher } = this.#running();
    const jobId = this.#ids.next();
    const count = submission.request.inputs.length;
    dispatcher.reserve(count);
    try {
      await store.submitJob({ ...submission, jobId, queuedAt: new Date() });
    } catch (error) {
      dispatcher.unreserve(count);
      throw error;
    }
    dispatcher.enqueue(jobId, submission.sync, count);
    return { job_id: jobId, status: 'queued' };
  }

  /** A job as it is now; null where there is none. */
  async find(jobId: string): Promise<JobSnapshot | null> {
    const { store, dispatcher } = this.#running();
    const job = await store.findJob(jobId);
    if (job?.progress === undefined) return job;
    const { bytesDone, bytesTotal } = dispatcher.progressOf(jobId);
    const { progress } = job;
    return {
      ...job,
      progress: {
        ...progress,
        bytes_done: progress.bytes_done + bytesDone,
        bytes_total: progress.bytes_total + bytesTotal,
      },
    };
  }

  /**
   * Resolves with the job the moment it has ended; with null where it does not end in time, or there is none. Rejects
   * when the signal is aborted.
   */
  async whenEnded(jobId: string, timeoutMs: number, signal: AbortSignal): Promise<JobSnapshot | null> {
    const { store, waiters } = this.#running();
    const settled = new AbortController();
    // The wait begins before the look, so that no end can fall between them.
    const waiting = waiters.wait(jobId, timeoutMs, AbortSignal.any([signal, settled.signal]));
    waiting.catch(() => undefined);
    const job = await store.findJob(jobId);
    if (job === null || job.timing.finished_at !== undefined) {
      settled.abort();
      return job;
    }
    return (await waiting) ? store.findJob(jobId) : null;
  }

  /** Whether jobs can be taken: the store answers, and what was written last could be written. */
  async healthy(): Promise<boolean> {
    if (this.#engine === null || this.#stopping) return false;
    const { store, dispatcher } = this.#engine;
    const answered = store.ping().then(
      () => true,
      () => false,
    );
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), HEALTH_BOUND_MS);
    try {
      return dispatcher.storeWorks && (await Promise.race([answered, late]));
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Starts nothing more, lets running inputs end within the grace, queues the others again, and lets go of the store.
   * What waits goes on at the next start.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    const engine = this.#engine;
    if (engine === null) return;
    clearInterval(engine.pruning);
    await engine.dispatcher.stop(graceMs);
    this.#engine = null;
    await engine.pool.close();
    await engine.store.close();
  }

  #running(): Engine {
    if (this.#engine !== null) return this.#engine;
    assert(this.#stopping, 'jobs are started before they are used');
    throw new AppError('SERVICE_STOPPING', {});
  }

  #assemble(store: JobStore, waiting: readonly WaitingJob[]): Engine {
    const { config, workerEntry: entry, log, workerBounds: bounds } = this.#options;
    const maxRunningInputs = this.#options.maxRunningInputs ?? availableParallelism();
    const pool = new WorkerPool({ entry, config, maxWorkers: maxRunningInputs, log, ...(bounds && { bounds }) });
    const waiters = new EndWaiters((jobIds) => store.endedAmong(jobIds), config.server.sync_poll_interval_ms);
    const limits = {
      maxInputsPerJob: config.worker.default_max_files_parallel,
      maxRunningJobs: config.worker.max_concurrent_batches,
    };
    const dispatcher = new Dispatcher({
      store,
      pool,
      log,
      limits,
      maxRunningInputs,
      capacity: config.worker.queue_capacity,
      clearStagings: (claim) => this.#clearStagings(claim),
      jobEnded: (jobId) => waiters.ended(jobId),
    });
    pool.prestart();
    for (const job of waiting) dispatcher.resume(job.jobId, job.sync, job.waiting);
    const pruning = setInterval(() => void this.#prune(store), PRUNE_INTERVAL_MS).unref();
    return { store, pool, dispatcher, waiters, pruning };
  }

  /** What cannot be removed takes room, but harms no output: the service goes on. */
  async #clearStagings(claim?: Claim): Promise<void> {
    const { clearStagings, log } = this.#options;
    await clearStagings?.(claim).catch((error: unknown) => {
      log.error({ job_id: claim?.jobId, input_index: claim?.inputIndex, err: error }, 'stagings could not be removed');
    });
  }

  async #prune(store: JobStore): Promise<void> {
    const { config, log } = this.#options;
    try {
      const pruned = await store.pruneEnded(new Date(Date.now() - config.jobs.retention_hours * HOUR_MS));
      if (pruned > 0) log.info({ pruned_jobs: pruned }, 'jobs past their retention were deleted');
    } catch (error) {
      if (this.#stopping) return; // The store was closed under it; the next start goes on.
      log.error({ err: error }, 'jobs past their retention could not be deleted');
    }
  }
}
