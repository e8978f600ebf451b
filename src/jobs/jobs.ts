import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import type { Config } from '#config/config.ts';
import { RELEASE } from '#config/release.ts';
import type { Readiness } from '#contract/readiness.ts';
import { AppError } from '#errors/app-error.ts';
import type { Launcher } from '#processes/launcher.ts';
import type { SignerProcess } from '#provenance/identity/signer-process.ts';
import type { CurrentState } from '#telemetry/metrics.ts';
import type { Telemetry } from '#telemetry/telemetry.ts';
import { type CallbackBounds, CallbackCourier, type CallbackOutcome, type Post } from './callbacks/callback-courier.ts';
import type { JobScope } from './caller.ts';
import type { InputDispatcher } from './dispatching/input-dispatcher.ts';
import { openEmbeddedEngine } from './embedded-engine.ts';
import { EndWaiters } from './end-waiters.ts';
import type { IdempotencyKey } from './idempotency-key.ts';
import type { Claim, JobSnapshot, Submission, SubmittedJob } from './job.ts';
import type { JobEngine } from './job-engine.ts';
import { type JobEvent, JobFeed } from './job-feed.ts';
import { JobIds } from './job-id.ts';
import type { Log } from './log.ts';
import { SparingLook } from './sparing-look.ts';
import type { JobCancel } from './store/cancel-job.ts';
import type { JobStore } from './store/job-store.ts';
import type { JobPage, ListedJobs } from './store/list-jobs.ts';
import type { QueueState } from './store/queue-state.ts';
import type { RecalledJob } from './store/recall-job.ts';
import { StoreProbe } from './store-probe.ts';
import { WorkerPool } from './workers/worker-pool.ts';
import type { WorkerBounds } from './workers/worker-process.ts';

/** Jobs whose time is over are deleted so often. */
const PRUNE_INTERVAL_MS = 60 * 60 * 1000;

const HOUR_MS = 60 * 60 * 1000;

export interface JobsOptions {
  readonly config: Config;
  /** The module that calls `runInputWorker`. */
  readonly workerEntry: URL;
  readonly log: Log;
  /** Inputs that run at once, of all jobs together; the number of cores unless given. */
  readonly maxRunningInputs?: number;
  readonly workerBounds?: Partial<WorkerBounds>;
  readonly launcher?: Launcher;
  readonly signer?: SignerProcess;
  /**
   * Removes what claims left behind whose worker is gone: one claim's, or all there is when the service starts and
   * holds the data folder.
   */
  readonly clearStagings?: (claim?: Claim) => Promise<void>;
  /** Sends a callback. */
  readonly post?: Post;
  readonly callbackBounds?: Partial<CallbackBounds>;
  readonly telemetry?: Telemetry;
}

/** What there is while the service runs. */
interface Engine {
  readonly store: JobStore;
  readonly pool: WorkerPool;
  readonly dispatcher: InputDispatcher;
  readonly waiters: EndWaiters;
  readonly feed: JobFeed;
  readonly courier: CallbackCourier;
  readonly queueState: SparingLook<QueueState>;
  readonly probe: StoreProbe;
  readonly pruning: NodeJS.Timeout;
  closeStore(): Promise<void>;
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
    const engine = await this.#openEngine();
    try {
      await this.#clearStagings();
      this.#engine = await this.#assemble(engine);
    } catch (error) {
      await engine.close();
      throw error;
    }
    void this.#prune(engine.store);
  }

  async #openEngine(): Promise<JobEngine> {
    const { data_dir: dataDir, database_url: databaseUrl } = this.#options.config.jobs;
    if (databaseUrl === undefined) return openEmbeddedEngine(dataDir);
    // What the cluster is made of takes memory, so it is loaded only where there is one.
    const { openCluster } = await import('./cluster/open-cluster.ts');
    return openCluster(databaseUrl, dataDir, this.#options.log);
  }

  /**
   * Records a job; from then on it is certain to be done. Throws QUEUE_FULL where too many inputs wait. A submission
   * with the idempotency key of another one is that job, or throws IDEMPOTENCY_KEY_REUSED.
   */
  async submit(submission: Submission): Promise<SubmittedJob> {
    if (this.#stopping) throw new AppError('SERVICE_STOPPING', {});
    if (this.#options.config.jobs.role === 'worker') throw new AppError('NODE_TAKES_NO_JOBS', {});
    const { store, dispatcher } = this.#running();
    const jobId = this.#ids.next();
    const count = submission.request.inputs.length;
    dispatcher.reserve(count);
    let known: RecalledJob | null;
    try {
      known = await store.submitJob({ ...submission, jobId, queuedAt: new Date() });
    } catch (error) {
      dispatcher.unreserve(count);
      throw error;
    }
    if (known !== null) {
      dispatcher.unreserve(count);
      return replayOf(known, submission.idempotency?.digest);
    }
    dispatcher.enqueue(jobId, submission.sync, count, submission.caller ?? null);
    return { job_id: jobId, status: 'queued', replayed: false };
  }

  /** The job that an idempotency key stands for; null where it is new. Throws as `submit` does. */
  async recall({ key, digest }: IdempotencyKey): Promise<SubmittedJob | null> {
    const known = await this.#running().store.recallJob(key);
    return known === null ? null : replayOf(known, digest);
  }

  /**
   * Cancels a job: what waits ends at once, what runs within the bound of an abort. `changed` is false where it was
   * cancelled or had ended before. Null where there is no such job in the scope.
   */
  async cancel(jobId: string, scope: JobScope = {}): Promise<{ job: JobSnapshot; changed: boolean } | null> {
    const { store, dispatcher } = this.#running();
    // Nothing of a job is held up for somebody who may not know of it.
    if (scope.caller !== undefined && (await store.findJob(jobId, scope)) === null) return null;
    const letGo = dispatcher.hold(jobId);
    let cancel: JobCancel | null;
    try {
      cancel = await store.cancelJob(jobId, scope);
      if (cancel?.changed) dispatcher.cancel(jobId, cancel.jobEnded);
    } finally {
      letGo();
    }
    const job = cancel === null ? null : await this.find(jobId);
    return job === null ? null : { job, changed: cancel?.changed === true };
  }

  /** A page of jobs, newest first. */
  list(jobs: ListedJobs): Promise<JobPage> {
    return this.#running().store.listJobs(jobs);
  }

  /** What happens to a job from now on, until it has ended or the signal is aborted; null where there is none in the scope. */
  async events(
    jobId: string,
    signal: AbortSignal,
    scope: JobScope = {},
  ): Promise<AsyncGenerator<JobEvent, void, void> | null> {
    const { feed } = this.#running();
    return (await this.find(jobId, scope)) === null ? null : feed.follow(jobId, signal);
  }

  /** A job as it is now; null where there is none in the scope. */
  async find(jobId: string, scope: JobScope = {}): Promise<JobSnapshot | null> {
    const { store, dispatcher } = this.#running();
    const job = await store.findJob(jobId, scope);
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

  /** Resolves with whether the store can be written, so that jobs can be taken and their results recorded. */
  async healthy(): Promise<boolean> {
    if (this.#engine === null || this.#stopping) return false;
    const { probe, dispatcher } = this.#engine;
    return dispatcher.storeWorks && (await probe.works());
  }

  /** Tells in detail how this node is. It is not ready while its store cannot be written, or its queue is full. */
  async readiness(): Promise<Readiness> {
    const { jobs, worker } = this.#options.config;
    const healthy = await this.healthy();
    const waiting = this.#engine?.dispatcher.waiting ?? 0;
    const isFull = jobs.role !== 'worker' && waiting >= worker.queue_capacity;
    return {
      ready: healthy && !isFull,
      version: RELEASE.version,
      role: jobs.role,
      store: { engine: jobs.database_url === undefined ? 'sqlite' : 'postgresql', reachable: healthy },
      queue: { waiting, capacity: worker.queue_capacity },
      workers: {
        running: this.#engine?.dispatcher.running ?? 0,
        limit: this.#maxRunningInputs,
        processes: this.#engine?.pool.size ?? 0,
      },
    };
  }

  /** What there is to do, counted a while ago where that took long, and what is done here. Rejects where the store cannot be reached. */
  async state(): Promise<CurrentState> {
    const { queueState, dispatcher, pool } = this.#running();
    const { queued, reserved, running, oldestQueuedAt, callbacks } = await queueState.value();
    return {
      inputs: { queued, reserved, running },
      oldestWaitSeconds: oldestQueuedAt === null ? 0 : Math.max(0, (Date.now() - Date.parse(oldestQueuedAt)) / 1000),
      callbacksWaiting: callbacks,
      runningHere: dispatcher.running,
      workerProcesses: pool.size,
    };
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
    await engine.courier.stop();
    this.#engine = null;
    await engine.pool.close();
    await engine.closeStore();
  }

  #running(): Engine {
    if (this.#engine !== null) return this.#engine;
    assert(this.#stopping, 'jobs are started before they are used');
    throw new AppError('SERVICE_STOPPING', {});
  }

  async #assemble({ store, begin, close }: JobEngine): Promise<Engine> {
    const { config, workerEntry: entry, log, workerBounds: bounds, launcher, signer, telemetry } = this.#options;
    const maxRunningInputs = this.#maxRunningInputs;
    const starting = { ...(bounds && { bounds }), ...(launcher && { launcher }), ...(signer && { signer }) };
    const pool = new WorkerPool({ entry, config, maxWorkers: maxRunningInputs, log, ...starting });
    if (maxRunningInputs > 0) pool.prestart();
    const waiters = new EndWaiters((jobIds) => store.endedAmong(jobIds), config.server.sync_poll_interval_ms);
    const feed = new JobFeed({
      find: (jobId) => this.find(jobId),
      endedInputs: (jobId) => store.endedInputs(jobId),
      entriesOf: (jobId, inputIndexes) => store.entriesOf(jobId, inputIndexes),
    });
    const courier = this.#courierFor(store);
    const limits = {
      maxInputsPerJob: config.worker.default_max_files_parallel,
      maxRunningJobs: config.worker.max_concurrent_batches,
    };
    const tellEnd = (jobId: string) => {
      waiters.ended(jobId);
      feed.ended(jobId);
      courier.lookSoon();
    };
    const dispatcher = await begin({
      pool,
      log,
      limits,
      maxRunningInputs,
      capacity: config.worker.queue_capacity,
      clearStagings: (claim) => this.#clearStagings(claim),
      inputEnded: (report) => telemetry?.inputEnded(report),
      jobEndedElsewhere: tellEnd,
      jobEnded: (jobId) => {
        tellEnd(jobId);
        void this.#reportEnd(store, jobId);
      },
    });
    const pruning = setInterval(() => void this.#prune(store), PRUNE_INTERVAL_MS).unref();
    const queueState = new SparingLook(() => store.queueState());
    const probe = new StoreProbe(() => store.probeWrite(), log);
    return { store, pool, dispatcher, waiters, feed, courier, queueState, probe, pruning, closeStore: close };
  }

  #courierFor(store: JobStore): CallbackCourier {
    const { config, log, telemetry, post = postNothing, callbackBounds: bounds = {} } = this.#options;
    const sent = (outcome: CallbackOutcome) => telemetry?.metrics.callbackSent(outcome);
    return new CallbackCourier({ store, secret: config.callbacks.secret, post, log, sent, bounds });
  }

  /** What is logged, measured and traced is worth a warning, not a job. */
  async #reportEnd(store: JobStore, jobId: string): Promise<void> {
    const { log, telemetry } = this.#options;
    try {
      const report = await store.reportOfJob(jobId);
      if (report === null) return;
      const { operation, caller, status, inputs, queuedAtMs, endedAtMs } = report;
      const whose = caller === null ? {} : { caller };
      log.info({ job_id: jobId, ...whose, operation, status, inputs, ms: endedAtMs - queuedAtMs }, 'job ended');
      telemetry?.jobEnded(report);
    } catch (error) {
      if (!this.#stopping) log.warn({ job_id: jobId, err: error }, 'a job ended, and how could not be read');
    }
  }

  get #maxRunningInputs(): number {
    if (this.#options.config.jobs.role === 'api') return 0;
    return this.#options.maxRunningInputs ?? availableParallelism();
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

function replayOf({ jobId, status, digest }: RecalledJob, asked: string | undefined): SubmittedJob {
  if (digest !== asked) throw new AppError('IDEMPOTENCY_KEY_REUSED', { jobId });
  return { job_id: jobId, status, replayed: true };
}

const postNothing: Post = () => Promise.reject(new Error('nothing here sends callbacks'));
