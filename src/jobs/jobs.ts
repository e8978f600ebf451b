import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { ThrottledQuery } from '#concurrency/throttled-query.ts';
import type { Config } from '#config/config.ts';
import { defaultIdentityOf } from '#config/identities.ts';
import type { ListedJob } from '#contract/job-list.ts';
import type { Readiness } from '#contract/service.ts';
import { AppError } from '#errors/app-error.ts';
import type { Log } from '#telemetry/logger.ts';
import type { NodeState, StoreState } from '#telemetry/metrics.ts';
import type { Telemetry } from '#telemetry/telemetry.ts';
import { WorkerPool, type WorkerPoolOptions } from '#workers/worker-pool.ts';
import type { WorkerTimeouts } from '#workers/worker-process.ts';
import { type CallbackLimits, type CallbackOutcome, CallbackSender, type Post } from './callback-sender.ts';
import type { JobScope } from './caller.ts';
import { type DependencyProbes, NOTHING_PROBED, needsOf } from './dependencies.ts';
import { CompletionWaiters, JobFeed, ListFeed } from './following/job-feeds.ts';
import { settledIdentity } from './identities.ts';
import type {
  IdempotencyKey,
  InputAttempt,
  JobEvent,
  JobSnapshot,
  ListEvent,
  Submission,
  SubmittedJob,
} from './job.ts';
import { JobIds } from './job-ids.ts';
import { type NodeParts, nodeStateOf, readinessOf, readStoreState } from './node-state.ts';
import { seenBy, withWaiting } from './outages/waiting-for.ts';
import type { JobEngine } from './queue/job-queue.ts';
import { openSqliteEngine } from './queue/sqlite-queue.ts';
import { outputPathsIn, type ResultEntry } from './result-entries.ts';
import { Scheduler, type SchedulerOptions } from './scheduler.ts';
import type { JobFilter, JobPage, JobStore, KnownJob } from './store/job-store.ts';
import { startPruning } from './store/maintenance.ts';

export interface JobsOptions extends Pick<WorkerPoolOptions, 'launcher' | 'signer' | 'trust'> {
  readonly config: Config;
  /** Returns the configuration in force, where a reload may replace keys of it. */
  readonly configNow?: () => Config;
  /** The module that calls `runInputWorker`. */
  readonly workerEntry: URL;
  readonly log: Log;
  /**
   * The embedded store, where it is being opened already, in a folder that the launcher hides as a whole: a worker starts
   * meanwhile. It is closed with the jobs.
   */
  readonly store?: Promise<JobEngine>;
  /** Inputs that run at once, of all jobs together; the number of cores unless given. */
  readonly maxRunningInputs?: number;
  readonly workerTimeouts?: Partial<WorkerTimeouts>;
  /**
   * Removes the staged outputs of an attempt whose worker is gone; without one, those of all, when the service starts
   * and holds the data folder. Never rejects: what cannot be removed takes disk space, but harms no output.
   */
  readonly clearStagings?: (attempt?: InputAttempt) => Promise<void>;
  /** Called when the embedded store cannot be used any more (`STORE_LOST`): only a new start opens it again. */
  readonly storeLost?: (error: AppError) => void;
  /** Find out whether dependencies work; without them, all seem to. */
  readonly probes?: DependencyProbes;
  /** Retries inputs that meet an outage a few times, and then fails them, instead of waiting. */
  readonly retriesOutages?: boolean;
  /** Sends a callback. */
  readonly post?: Post;
  readonly callbackLimits?: Partial<CallbackLimits>;
  readonly telemetry?: Telemetry;
}

/** The parts of a started service. */
interface Engine extends JobEngine {
  readonly scheduler: Scheduler;
  readonly waiters: CompletionWaiters;
  readonly feed: JobFeed;
  readonly listFeed: ListFeed;
  readonly callbackSender: CallbackSender;
  readonly storeState: ThrottledQuery<Omit<StoreState, 'works'>>;
  readonly stopPruning: () => void;
}

/** Accepts, runs and reports jobs. A job that `submit` resolved with is on disk and survives the process. */
export class Jobs {
  /** Opens the embedded store of a data folder ahead, for `store` of the options. */
  static readonly openStore = openSqliteEngine;
  readonly #options: JobsOptions;
  readonly #ids = new JobIds();
  readonly #pool: WorkerPool;
  #engine: Engine | null = null;
  #stopping = false;

  constructor(options: JobsOptions) {
    this.#options = options;
    const { workerEntry: entry, workerTimeouts: timeouts, ...others } = options;
    const crashed = () => options.telemetry?.metrics.workerCrashed();
    const maxWorkers = this.#maxRunningInputs;
    this.#pool = new WorkerPool({ ...others, entry, maxWorkers, crashed, ...(timeouts && { timeouts }) });
    options.signer?.onRenewal(() => void this.identitiesChanged());
  }

  /**
   * Opens the store, recovers what was running or waiting when the service last exited, and starts it. Rejects with an
   * AppError (`STORE_…`, `DATABASE_…`) when the store cannot be used: it is locked by another process, damaged, of a newer
   * release, or on a full disk.
   */
  async start(): Promise<void> {
    assert(this.#engine === null, 'jobs are started once');
    if (this.#options.store !== undefined) this.#pool.prestart();
    let engine: JobEngine | null = null;
    try {
      await this.#options.signer?.started;
      engine = await this.#openEngine();
      await this.#options.clearStagings?.();
      this.#engine = await this.#assemble(engine);
    } catch (error) {
      // A worker would keep this process alive.
      await this.#pool.close();
      await engine?.close();
      throw error;
    }
  }

  async #openEngine(): Promise<JobEngine> {
    const { config, log, store, storeLost } = this.#options;
    const { data_dir: dataDir, database_url: databaseUrl } = config.jobs;
    if (databaseUrl === undefined) return store ?? openSqliteEngine(dataDir, log, storeLost);
    // The cluster's dependencies take memory, so they are loaded only when a database is configured.
    const { openCluster } = await import('./queue/postgres-engine.ts');
    return openCluster(databaseUrl, { ...this.#options, identities: this.#options.signer });
  }

  /**
   * Records a job, or returns the one that was submitted with the same idempotency key, or has its retried inputs. Throws
   * `QUEUE_FULL`, `CALLER_QUEUE_FULL`, `DEPENDENCY_AWAY`, `JOB_EXCEEDS_QUEUE`, `IDEMPOTENCY_KEY_REUSED` when the key came with
   * another request, `IDENTITY_UNKNOWN`, `IDENTITY_FORBIDDEN`, `NODE_TAKES_NO_JOBS` on a node with the role `worker`, `NO_VALID_IDENTITY` where nothing can be signed,
   * `SERVICE_STOPPING`, or an error of the store (`STORE_…`, `DATABASE_…`).
   */
  async submit(submission: Submission): Promise<SubmittedJob> {
    if (this.#stopping) throw new AppError('SERVICE_STOPPING', {});
    if (this.#options.config.jobs.role === 'worker') throw new AppError('NODE_TAKES_NO_JOBS', {});
    const { store, scheduler } = this.#running();
    const config = this.#config;
    const identity = settledIdentity(submission, config);
    const needs = needsOf(submission, identity, config);
    const { admission } = scheduler;
    const reservation = await admission.admit({ caller: submission.caller ?? null, identity, needs });
    const jobId = this.#ids.next();
    let known: KnownJob | null | undefined;
    try {
      known = await store.submitJob({ ...submission, identity, jobId, queuedAt: new Date(), needs });
    } finally {
      admission.settle(reservation, known === null);
    }
    if (known === null) return { job_id: jobId, status: 'queued', replayed: false };
    return replayOf(known, submission.idempotency?.digest ?? '');
  }

  /**
   * Returns the job that was submitted with an idempotency key; null when the key is new. Throws
   * `IDEMPOTENCY_KEY_REUSED` when the key came with another request, `SERVICE_STOPPING`, or an error of the store
   * (`STORE_…`, `DATABASE_…`).
   */
  async recall({ key, digest }: IdempotencyKey): Promise<SubmittedJob | null> {
    const known = await this.#running().store.findByIdempotencyKey(key);
    return known === null ? null : replayOf(known, digest);
  }

  /** The record of jobs, for look-ups that need nothing else. */
  get record(): Pick<JobStore, 'findRequest' | 'findRetriedJob' | 'findFailedJobs' | 'countLeftOut'> {
    return this.#running().store;
  }

  /**
   * Cancels a job: inputs that wait finish at once, running ones within the timeout of an abort. `changed` is false when it
   * was cancelled or finished before. Resolves with null when there is no such job in the scope.
   */
  async cancel(jobId: string, scope: JobScope = {}): Promise<{ job: JobSnapshot; changed: boolean } | null> {
    const { store, scheduler } = this.#running();
    const cancel = await store.cancelJob(jobId, scope);
    if (cancel === null) return null;
    scheduler.admission.release(cancel.caller, cancel.inputCount);
    if (cancel.finishedJob !== null) scheduler.jobFinished(cancel.finishedJob);
    const job = await this.find(jobId);
    return job === null ? null : { job, changed: cancel.changed };
  }

  /** Returns a page of jobs, newest first. */
  async list(filter: JobFilter): Promise<JobPage> {
    const { jobs, more } = await this.#running().store.listJobs(filter);
    return { jobs: (await this.#asNow(jobs)).map((job) => seenBy(job, filter)), more };
  }

  /** Returns the events of a job until it has finished or the signal is aborted; null when there is none in the scope. */
  async events(
    jobId: string,
    signal: AbortSignal,
    scope: JobScope = {},
  ): Promise<AsyncGenerator<JobEvent, void, void> | null> {
    const { feed } = this.#running();
    if ((await this.find(jobId, scope)) === null) return null;
    return feed.follow(jobId, signal, scope);
  }

  /** Returns the changes of the list of jobs until the signal is aborted. */
  changes(signal: AbortSignal, scope: JobScope = {}): AsyncGenerator<ListEvent, void, void> {
    return this.#running().listFeed.follow(scope, signal);
  }

  /** Returns a job as it is now; null when there is none in the scope. */
  async find(jobId: string, scope: JobScope = {}): Promise<JobSnapshot | null> {
    const job = await this.#running().store.findJob(jobId, scope);
    if (job === null) return null;
    const [found = job] = await this.#asNow([job]);
    return seenBy(found, scope);
  }

  /**
   * Returns the paths of the committed outputs of an input, a sidecar last; none when it failed, or its job is not
   * in the scope.
   */
  async outputPathsOf(jobId: string, inputIndex: number, scope: JobScope = {}): Promise<readonly string[]> {
    const entries: ResultEntry[] = JSON.parse(await this.#running().store.resultEntries(jobId, [inputIndex], scope));
    return entries.flatMap(outputPathsIn);
  }

  /**
   * Resolves with a job as soon as it has finished; with null when it does not finish in time, or there is none. Rejects
   * when the signal is aborted.
   */
  async whenFinished(jobId: string, timeoutMs: number, signal: AbortSignal): Promise<JobSnapshot | null> {
    const { store, waiters } = this.#running();
    // The job is read once, after it has finished.
    return (await waiters.wait(jobId, timeoutMs, signal)) ? store.findJob(jobId) : null;
  }

  /** Resolves with true when the store can be written, so that jobs can be accepted and their results recorded. */
  async healthy(): Promise<boolean> {
    if (this.#engine === null || this.#stopping) return false;
    return await this.#engine.scheduler.writes.work();
  }

  /**
   * Returns the state of this node, with names of dependencies for admins. It is not ready while its store cannot be written,
   * its queue is full, or nothing can be signed.
   */
  async readiness({ isAdmin }: { readonly isAdmin: boolean } = { isAdmin: true }): Promise<Readiness> {
    const isHealthy = await this.healthy();
    return readinessOf(this.#parts, isHealthy, isAdmin);
  }

  /**
   * Returns the numbers of queued and running inputs, which may be a while old. Throws when the store cannot be
   * reached.
   */
  async state(): Promise<StoreState> {
    const { storeState } = this.#running();
    const [works, state] = await Promise.all([this.healthy(), storeState.value()]);
    return { works, ...state };
  }

  /** Returns the state of this node, without asking the store. */
  nodeState(): NodeState {
    return nodeStateOf(this.#parts);
  }

  /**
   * Takes note of another configuration, or of identities that were replaced: workers get the configuration in force, which says
   * which files are protected.
   */
  async identitiesChanged(): Promise<void> {
    this.#pool.useConfig(this.#config);
    await this.#engine?.scheduler.identitiesChanged();
  }

  /**
   * Starts nothing more, lets running inputs finish within the grace period, queues the others again, and closes the store.
   * Waiting inputs continue at the next start.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    const engine = this.#engine;
    if (engine === null) return;
    engine.stopPruning();
    await engine.scheduler.stop(graceMs);
    await engine.callbackSender.stop();
    this.#engine = null;
    await this.#pool.close();
    await engine.close();
  }

  /** Adds the outages that jobs wait for. */
  #asNow<J extends ListedJob>(jobs: readonly J[]): Promise<readonly J[]> {
    const { scheduler, store } = this.#running();
    return withWaiting(jobs, scheduler.outages, store);
  }

  /** The configuration in force. */
  get #config(): Config {
    const { config, configNow } = this.#options;
    return configNow === undefined ? config : configNow();
  }

  get #parts(): NodeParts {
    const scheduler = this.#engine?.scheduler;
    return {
      config: this.#config,
      identities: this.#options.signer,
      outages: scheduler?.outages ?? [],
      waiting: scheduler?.admission.waiting ?? 0,
      running: scheduler?.running ?? 0,
      maxRunning: this.#maxRunningInputs,
      workerProcesses: this.#pool.size,
      otherNodes: this.#engine === null ? [] : this.#engine.otherNodes(),
    };
  }

  #running(): Engine {
    if (this.#engine !== null) return this.#engine;
    assert(this.#stopping, 'jobs are started before they are used');
    throw new AppError('SERVICE_STOPPING', {});
  }

  async #assemble(engine: JobEngine): Promise<Engine> {
    const { config, log } = this.#options;
    const { store } = engine;
    const following = {
      waiters: new CompletionWaiters((jobIds) => store.finishedAmong(jobIds), config.server.sync_poll_interval_ms),
      feed: new JobFeed({ ...store, find: (jobId) => this.find(jobId) }),
      callbackSender: this.#createCallbackSender(store),
    };
    const scheduler = new Scheduler(this.#schedulerOptions(following), engine);
    await scheduler.begin();
    // Now that the files of the store exist, they are hidden from it.
    if (config.jobs.role !== 'api') this.#pool.prestart();
    return {
      ...engine,
      ...following,
      scheduler,
      listFeed: new ListFeed(async (since, limit) => {
        const { jobs, more } = await store.recentJobs(since, limit);
        return { jobs: await this.#asNow(jobs), more };
      }),
      storeState: new ThrottledQuery(() => readStoreState(store, scheduler.outages)),
      stopPruning: startPruning(store, config.jobs.retention_hours, log),
    };
  }

  #schedulerOptions({
    waiters,
    feed,
    callbackSender,
  }: Pick<Engine, 'waiters' | 'feed' | 'callbackSender'>): SchedulerOptions {
    const { config, log, telemetry, clearStagings, probes = NOTHING_PROBED, retriesOutages = false } = this.#options;
    const notifyFinished = (jobId: string) => {
      waiters.finished(jobId);
      feed.finished(jobId);
      callbackSender.pollSoon();
    };
    return {
      pool: this.#pool,
      log,
      maxRunningInputs: this.#maxRunningInputs,
      maxRunningInputsPerJob: config.worker.default_max_files_parallel,
      maxRunningJobs: config.worker.max_concurrent_batches,
      capacity: config.worker.queue_capacity,
      probes,
      outageHours: config.jobs.outage_hours,
      defaultIdentity: () => defaultIdentityOf(this.#config),
      identities: this.#options.signer,
      retriesOutages,
      callers: () => this.#config.auth.tokens.map(({ caller }) => caller),
      clearStagings: async (attempt) => clearStagings?.(attempt),
      runEnded: (report) => telemetry?.runEnded(report),
      inputFailed: (reason) => telemetry?.metrics.inputFailed(reason),
      jobFinishedElsewhere: notifyFinished,
      jobFinished: (report) => {
        notifyFinished(report.jobId);
        telemetry?.jobFinished(report);
      },
    };
  }

  #createCallbackSender(store: JobStore): CallbackSender {
    const { config, log, telemetry, post = postNothing, callbackLimits: limits = {} } = this.#options;
    const sent = (outcome: CallbackOutcome) => telemetry?.metrics.callbackSent(outcome);
    return new CallbackSender({ store, secret: config.callbacks.secret, post, log, sent, limits });
  }

  get #maxRunningInputs(): number {
    if (this.#options.config.jobs.role === 'api') return 0;
    return this.#options.maxRunningInputs ?? availableParallelism();
  }
}

/** The part of the jobs that requests use. Starting and stopping them is the service's business. */
export type JobService = Omit<Jobs, 'start' | 'stop' | 'identitiesChanged' | 'state' | 'nodeState'>;

function replayOf({ jobId, status, digest }: KnownJob, asked: string): SubmittedJob {
  if (digest !== asked) throw new AppError('IDEMPOTENCY_KEY_REUSED', { jobId });
  return { job_id: jobId, status, replayed: true };
}

const postNothing: Post = () => Promise.reject(new Error('nothing here sends callbacks'));
