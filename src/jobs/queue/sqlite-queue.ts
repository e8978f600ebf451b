import type { AppError } from '#errors/app-error.ts';
import type { Log } from '#telemetry/logger.ts';
import type { JobScope } from '../caller.ts';
import type { InputAttempt } from '../job.ts';
import type {
  Cancellation,
  FinishedInput,
  HandedIn,
  JobStore,
  KnownJob,
  LeaseRequest,
  NewJob,
  ReleasedInput,
} from '../store/job-store.ts';
import { LeaseTurns } from '../store/priority.ts';
import { openSqlite } from '../store/sqlite/sqlite-job-store.ts';
import { type JobEngine, type JobQueue, type NewLeases, QueueEvents, type Renewal } from './job-queue.ts';

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
  const queue = new SqliteQueue(store);
  const close = async () => {
    await queue.close();
    await store.close();
  };
  return {
    store: {
      ...store,
      submitJob: (job) => queue.submitJob(job),
      cancelJob: (jobId, scope) => queue.cancelJob(jobId, scope),
      close,
    },
    queue,
    close,
  };
}

/**
 * The queue in the embedded database. A lease and the result of the input before are called in the same turn of the event loop,
 * so that they share a commit.
 */
class SqliteQueue implements JobQueue {
  readonly isShared = false;
  readonly #store: JobStore;
  readonly #events = new QueueEvents();
  readonly #turns = new LeaseTurns();
  /** Inputs that failed for a moment, each until its pause is over. */
  readonly #paused = new Map<InputAttempt, NodeJS.Timeout>();

  constructor(store: JobStore) {
    this.#store = store;
  }

  get events(): ReadableStream {
    return this.#events.stream;
  }

  async submitJob(job: NewJob): Promise<KnownJob | null> {
    const known = await this.#store.submitJob(job);
    if (known === null) this.#announceWork();
    return known;
  }

  async cancelJob(jobId: string, scope?: JobScope): Promise<Cancellation | null> {
    const cancellation = await this.#store.cancelJob(jobId, scope);
    if (cancellation?.changed) this.#events.push({ type: 'cancelled', jobId });
    return cancellation;
  }

  async lease(request: LeaseRequest): Promise<NewLeases> {
    return { inputs: await this.#store.leaseInputs(request, this.#turns.next()), finishedJobs: [] };
  }

  /** Leases of the embedded store last until its process exits. */
  async renew(running: readonly InputAttempt[]): Promise<Renewal> {
    const jobIds = [...new Set(running.map(({ jobId }) => jobId))];
    return { lost: [], cancelledJobs: jobIds.length === 0 ? [] : await this.#store.cancelledAmong(jobIds) };
  }

  async mayCommit(): Promise<boolean> {
    return true;
  }

  finish(results: readonly FinishedInput[]): Promise<HandedIn> {
    return this.#store.finishInputs(results);
  }

  async release(inputs: readonly ReleasedInput[]): Promise<HandedIn> {
    const handedIn = await this.#store.releaseInputs(inputs);
    for (const input of inputs) {
      if ('retryAt' in input && input.retryAt !== null) this.#pause(input.lease, input.retryAt);
    }
    this.#announceWork();
    return handedIn;
  }

  async close(): Promise<void> {
    for (const timer of this.#paused.values()) clearTimeout(timer);
    // Where that fails, the next start recovers them.
    await this.#requeue([...this.#paused.keys()]).catch(() => undefined);
    this.#events.close();
  }

  #announceWork(): void {
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

  async #requeue(leases: readonly InputAttempt[]): Promise<void> {
    if (leases.length > 0) await this.#store.releaseInputs(leases.map((lease) => ({ lease, reason: 'stopped' })));
  }
}

/** The pause before an input is queued again after the store could not be written, in milliseconds. */
const RETRY_INTERVAL_MS = 1_000;
