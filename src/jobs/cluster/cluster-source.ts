import { ThrottledQuery } from '#concurrency/throttled-query.ts';
import type { Config } from '#config/config.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import type { SignerSupervisor } from '#provenance/signer-supervisor.ts';
import type { Log } from '#telemetry/logger.ts';
import { MAX_EXTRA_SLOTS } from '../dispatching/input-queue.ts';
import { retryPauseMs } from '../dispatching/input-runs.ts';
import { InputRun, type JobEngine, type RunEnd, type WorkHost, type WorkSource } from '../dispatching/work-source.ts';
import { holdDataFolder } from '../store/data-folder.ts';
import type { InputEnd, JobPaths, LeasedInput } from '../store/job-store.ts';
import { pathsOfSingleInput } from '../store/output-paths.ts';
import type { NodeSettings } from '../store/postgres/node-records.ts';
import { type Notification, NotificationListener } from '../store/postgres/notifications.ts';
import { openPostgresStore, type PostgresJobStore, type ReleaseReason } from '../store/postgres/postgres-job-store.ts';
import { type FinishedRun, LeaseAndComplete } from './lease-and-complete.ts';
import { LeasedInputs, type LeasedMessage, type RunningLease } from './leased-inputs.ts';
import { NodeRegistry, nodeSettings } from './node-registry.ts';

/** The interval of heartbeats, which renew leases and look for cancellations, in milliseconds. */
const HEARTBEAT_INTERVAL_MS = 2_000;

/** Bound on the connections of a node, which submissions, look-ups and workers share. One more listens for notifications. */
const MAX_CONNECTIONS = 10;

interface ClusterOptions {
  readonly config: Config;
  /** Absent on nodes that do not sign. */
  readonly signer?: Pick<SignerSupervisor, 'identity'>;
  readonly log: Log;
}

/**
 * Opens this node's own data folder and the database that nodes share, and joins them. Throws an AppError of the catalogue
 * when either cannot be used, or a node has other settings.
 */
export async function openCluster(url: string, { config, signer, log }: ClusterOptions): Promise<JobEngine> {
  const releaseFolder = await holdDataFolder(config.jobs.data_dir);
  try {
    const store = await openPostgresStore(url, MAX_CONNECTIONS, log);
    const registry = await joinNodes(store, nodeSettings(config, signer?.identity ?? null), log);
    return {
      store,
      createSource: (host) => new ClusterSource(store, url, host, log),
      close: async () => {
        await registry.leave();
        await store.close();
        releaseFolder();
      },
    };
  } catch (error) {
    releaseFolder();
    throw error;
  }
}

/** Joins the other nodes. Closes the store when that is refused. */
async function joinNodes(store: PostgresJobStore, settings: NodeSettings, log: Log): Promise<NodeRegistry> {
  try {
    return await NodeRegistry.join(store, settings, log);
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Receives job messages while workers are free, each with the lease of its input, and records results together with the
 * deletion of their messages.
 */
class ClusterSource implements WorkSource<RunningLease> {
  readonly isClustered = true;
  /** Only the database knows. */
  readonly mayHaveQueued = true;
  readonly #store: PostgresJobStore;
  readonly #url: string;
  readonly #host: WorkHost;
  readonly #log: Log;
  readonly #leased: LeasedInputs;
  readonly #transactions: LeaseAndComplete;
  #listener: NotificationListener | undefined;
  /** The number of queued inputs of all nodes. */
  readonly #queuedCount: ThrottledQuery<number>;
  #heartbeats: NodeJS.Timeout | undefined;
  #beating: Promise<void> | null = null;
  /** True while one more input may be leased than there are slots. */
  #mayLeaseExtra = false;

  constructor(store: PostgresJobStore, url: string, host: WorkHost, log: Log) {
    this.#store = store;
    this.#url = url;
    this.#host = host;
    this.#log = log;
    this.#queuedCount = new ThrottledQuery(() => store.countQueued());
    this.#leased = new LeasedInputs(store);
    this.#transactions = new LeaseAndComplete({
      store,
      persistence: host.persistence,
      clock: this.#leased.clock,
      capacity: (requested) => this.#capacity(requested),
      excludedJobs: (requested) => this.#excludedJobs(requested),
      start: (message) => this.#start(message),
    });
  }

  async begin(): Promise<void> {
    this.#heartbeats = setInterval(() => {
      this.#beating ??= this.#beat().finally(() => {
        this.#beating = null;
      });
    }, HEARTBEAT_INTERVAL_MS).unref();
    const wake = () => this.#transactions.wake();
    this.#listener = new NotificationListener(this.#url, this.#log, (notification) => this.#hear(notification), wake);
  }

  /** Looks for work: the messages were recorded with the inputs, and every node was notified. */
  enqueue(): void {
    this.#transactions.wake();
  }

  startExtra(): void {
    this.#mayLeaseExtra = true;
    this.#transactions.wake();
    this.#mayLeaseExtra = false;
  }

  async lease({ lease }: RunningLease): Promise<LeasedInput> {
    return lease;
  }

  /** Waits while the database cannot be reached: it may come back, and the input still be this node's. */
  async mayCommit(lease: LeasedInput): Promise<AppErrorData | undefined> {
    const input = this.#leased.of(lease);
    if (input !== undefined && (await this.#leased.isPublishable(input))) return undefined;
    return new AppError('LEASE_LOST', { jobId: lease.jobId, inputIndex: lease.inputIndex }).toData();
  }

  async record(input: RunningLease, lease: LeasedInput, end: RunEnd): Promise<InputEnd | undefined> {
    input.hasNoSlot = true;
    const recorded = isResult(lease, end)
      ? await this.#transactions.record(input, end)
      : await this.#requeue(input, end);
    if (recorded?.input === 'late') await this.#handleLate(lease, end);
    this.#leased.remove(input);
    return recorded;
  }

  /** Frees the slot, which the next transaction uses. */
  release(input: RunningLease): void {
    if (input.hasNoSlot) return;
    input.hasNoSlot = true;
    this.#transactions.wake();
  }

  pathsOfJob(jobId: string): Promise<JobPaths> {
    const input = this.#leased.singleInputOf(jobId);
    if (!input?.request) return this.#store.pathsOfJob(jobId);
    return Promise.resolve(pathsOfSingleInput(input.lease, input.request));
  }

  /** Inputs are leased in transactions, either before that of the cancellation or after it. */
  pauseJob(): () => void {
    return () => undefined;
  }

  drop(): number {
    return 0;
  }

  idle(): Promise<void> {
    return this.#transactions.idle();
  }

  async stop(): Promise<void> {
    this.#transactions.close();
    clearInterval(this.#heartbeats);
    await this.#beating;
    await this.#listener?.close();
  }

  #hear(notification: Notification): void {
    if (notification.type === 'queued') this.#transactions.wake();
    else if (notification.type === 'cancelled') this.#host.cancel(notification.jobId, false);
    else this.#host.jobFinishedElsewhere(notification.jobId);
  }

  #capacity(requested: number): number {
    const { maxRunningInputs, limits, draining } = this.#host;
    const { running, runningOfSeveral } = this.#leased;
    if (draining.aborted) return 0;
    const free = maxRunningInputs - sumOf(running.values()) - requested;
    const freeJobs = limits.maxRunningJobs - running.size - requested;
    const mayLeaseExtra = this.#mayLeaseExtra && requested === 0 && freeJobs > 0 && free > -MAX_EXTRA_SLOTS;
    if (free <= 0) return mayLeaseExtra ? 1 : 0;
    const belowLimit = [...runningOfSeveral.values()].filter((inputs) => inputs < limits.maxRunningInputsPerJob);
    // If no other job may start, only running ones are not excluded.
    if (freeJobs <= 0 && belowLimit.length === 0) return 0;
    // All that are leased next may be of one job.
    const freeInputsPerJob = limits.maxRunningInputsPerJob - Math.max(0, ...belowLimit) - requested;
    return Math.max(0, Math.min(free, freeInputsPerJob, freeJobs > 0 ? freeJobs : free));
  }

  get #isFull(): boolean {
    const { maxRunningInputs, draining } = this.#host;
    return !draining.aborted && maxRunningInputs > 0 && sumOf(this.#leased.running.values()) >= maxRunningInputs;
  }

  /**
   * Returns the jobs that may lease nothing more. When every worker is busy, also those of callers with a running
   * input; when the limit of running jobs is reached, all others, but for one that is submitted while they are read.
   * Null when they are too many.
   */
  async #excludedJobs(requested: number): Promise<readonly string[] | null> {
    const { limits } = this.#host;
    const { running, runningOfSeveral } = this.#leased;
    if (this.#isFull) return this.#store.jobsOfSameCallers([...running.keys()]);
    const atLimit = [...runningOfSeveral]
      .filter(([, inputs]) => inputs + requested > limits.maxRunningInputsPerJob)
      .map(([jobId]) => jobId);
    if (running.size + requested <= limits.maxRunningJobs) return atLimit;
    const others = await this.#store.otherJobs([...running.keys()]);
    return others === null ? null : [...atLimit, ...others];
  }

  #start(message: LeasedMessage): void {
    const { lease, jobFinished } = message;
    if (jobFinished) this.#host.jobFinished(message.message.jobId);
    if (lease === null) return;
    this.#host.start(this.#leased.add(message, lease, new InputRun(lease.jobId)));
  }

  async #requeue({ lease, message, lost }: RunningLease, end: RunEnd): Promise<InputEnd | undefined> {
    const reason = releaseReasonOf(lease, end);
    const released = await this.#host.persistence.write(() => this.#store.releaseInput(message, lease, reason, lost));
    this.#transactions.wake();
    return released;
  }

  /**
   * Takes back the service exit that another node counted when it leased the input anew: this node is alive, whichever way the
   * run finished, and whether its heartbeat has found out by now that the lease was lost or not.
   */
  async #handleLate(lease: LeasedInput, end: RunEnd): Promise<void> {
    this.#logLate(lease, end);
    await this.#host.persistence.write(() => this.#store.undoServiceExit(lease));
  }

  #logLate({ jobId, inputIndex, attempt }: LeasedInput, end: RunEnd): void {
    const ids = { job_id: jobId, input_index: inputIndex, attempt };
    if (end.type !== 'finished' || end.entry.status !== 'succeeded') {
      this.#log.warn(ids, 'a lease was lost: another node runs the input');
      return;
    }
    this.#log.error(
      { ...ids, delivered_digest: end.digest },
      'an output was published after its lease was lost: another attempt may have published to the same path',
    );
  }

  /** Renews leases, records progress, and stops inputs that were cancelled or whose lease was lost. */
  async #beat(): Promise<void> {
    try {
      for (const { lease, run } of await this.#leased.renew()) {
        const { jobId, inputIndex, attempt } = lease;
        this.#log.warn({ job_id: jobId, input_index: inputIndex, attempt }, 'a lease was lost');
        run.abort.abort(new Error('the lease was lost'));
      }
      for (const jobId of await this.#store.cancelledAmong(this.#leased.jobs)) this.#host.cancel(jobId, false);
      const changed = this.#leased.takeChangedProgress();
      if (changed.length > 0) await this.#store.recordProgress(changed);
      const queued = await this.#queuedCount.freshValue();
      if (queued !== undefined) this.#host.correctWaiting(queued);
    } catch (error) {
      this.#log.warn({ err: error }, 'the heartbeat of this node could not be written');
    }
  }
}

/** Returns false when the input is queued again. */
function isResult(lease: LeasedInput, end: RunEnd): end is FinishedRun {
  return end.type === 'finished' && retryPauseMs(lease, end) === null;
}

function releaseReasonOf(lease: LeasedInput, end: RunEnd): ReleaseReason {
  if (end.type === 'process-exited') return { type: 'process-exited', exitCause: end.exitCause };
  if (end.type === 'finished') return { type: 'transient-failure', retryDelayMs: retryPauseMs(lease, end) ?? 0 };
  return { type: 'stopped' };
}

function sumOf(counts: Iterable<number>): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}
