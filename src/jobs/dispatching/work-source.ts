import { type Backoff, backoffMs, pause } from '#concurrency/retry.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import type { ByteProgress } from '#operations/operation.ts';
import type { Log } from '#telemetry/logger.ts';
import { NO_PROGRESS } from '../job.ts';
import type { ResultEntry } from '../result-entries.ts';
import type { InputEnd, JobPaths, JobRequest, JobStore, LeasedInput } from '../store/job-store.ts';
import type { QueueLimits } from './input-queue.ts';

/** An input that a work source started, from before its lease is committed until its end is recorded. */
export interface WorkItem {
  readonly run: InputRun;
  /** The request of its job, when it came with the lease; otherwise the dispatcher reads it. */
  readonly request: JobRequest | null;
}

/** A job that was recorded in the store with queued inputs. */
export interface EnqueuedJob {
  readonly jobId: string;
  readonly sync: boolean;
  /** The number of its queued inputs. */
  readonly count: number;
  readonly caller: string | null;
}

/**
 * Decides which input runs next in this process, and records how it ended. The dispatcher does everything in between.
 * There are two: an in-memory queue that is made from the embedded store, and the job messages that several nodes share
 * on PostgreSQL. `test/jobs/work-source.long.ts` and `test/jobs/cluster` test them.
 *
 * Obligations: every input is leased in the store before it runs, and started at most once for each lease. A source
 * starts inputs only by `WorkHost.start`, and none after `WorkHost.draining` was aborted. `Item` is the source's own
 * record of an input that it started; the dispatcher hands it back.
 */
export interface WorkSource<Item extends WorkItem = WorkItem> {
  /**
   * True when other nodes run inputs of the same jobs. Then leases expire, output paths are reserved in the store, the store
   * has the progress of running inputs.
   */
  readonly isClustered: boolean;

  /** False when nothing is queued. True when something is, or when only the database knows. */
  readonly mayHaveQueued: boolean;

  /** Starts what was queued before, and looks for work from then on. To be called once. Throws when the store cannot be used. */
  begin(): Promise<void>;

  /** Starts inputs of a recorded job, as far as slots are free. */
  enqueue(job: EnqueuedJob): void;

  /**
   * Starts at most one input beyond the number of slots, of a job and a caller that have nothing running. Called after
   * a stall: inputs wait, and no slot has become free for a while.
   */
  startExtra(): void;

  /** Resolves with the committed lease of a started item; undefined when there is none, for instance after a cancellation. */
  lease(item: Item): Promise<LeasedInput | undefined>;

  /** Resolves with undefined when the output may be committed now, otherwise with the refusal. May wait until that is certain. */
  mayCommit(lease: LeasedInput): Promise<AppErrorData | undefined>;

  /**
   * Records how a run ended: its result, or that it is queued again. Called once for each lease. Resolves with undefined when
   * that could not be recorded; the input is then recovered as if this process had crashed.
   */
  record(item: Item, lease: LeasedInput, end: RunEnd): Promise<InputEnd | undefined>;

  /** Counts the slot of an item as free, and starts what may start. Called once for each item, after `record` at the latest. */
  release(item: Item): void;

  /** Returns the paths that a job reads, and those that it has written. */
  pathsOfJob(jobId: string): Promise<JobPaths>;

  /**
   * Pauses a job: none of its inputs starts until the returned function, `resume`, is called. Called before a cancellation is
   * written: inputs that the store still has as reserved must not start while it is.
   */
  pauseJob(jobId: string): () => void;

  /** Forgets the queued inputs of a cancelled job, and returns their number. */
  drop(jobId: string): number;

  /** Resolves when no transaction is under way that may start an input. */
  idle(): Promise<void>;

  /** Stops looking for work, and queues again what was leased and not started. To be called when nothing runs any more. */
  stop(): Promise<void>;
}

/** The dispatcher, as work sources use it. */
export interface WorkHost {
  readonly persistence: Persistence;
  readonly limits: QueueLimits;
  /** Slots for running inputs; 0 when this node runs none. */
  readonly maxRunningInputs: number;
  /** Free slots; below 0 while extra inputs run. */
  readonly freeSlots: number;
  /** Aborted when the service begins to stop. */
  readonly draining: AbortSignal;
  /** Runs an item. Never throws. */
  start(item: WorkItem): void;
  /** Waits for background work before the service stops. */
  track(work: Promise<unknown>): void;
  /** Enqueues inputs that were accepted before, even beyond the queue's capacity. */
  requeue(job: EnqueuedJob): void;
  /** Corrects the number of waiting inputs by a count of the whole database. */
  correctWaiting(count: number): void;
  /** Stops the running inputs of a cancelled job. */
  cancel(jobId: string, jobFinished: boolean): void;
  /** Reports a job that finished in this process. */
  jobFinished(jobId: string): void;
  /** Reports a job that finished in any process, perhaps in this one. */
  jobFinishedElsewhere(jobId: string): void;
}

/** An open store with its work source: embedded in this process, or shared with other nodes. */
export interface JobEngine {
  readonly store: JobStore;
  createSource(host: WorkHost): WorkSource;
  /** Closes the store. To be called after the dispatcher has stopped. */
  close(): Promise<void>;
}

/** The end of a run, as it is to be recorded. */
export type RunEnd =
  | {
      readonly type: 'finished';
      readonly entry: ResultEntry;
      readonly progress: ByteProgress;
      /** True when a retry may succeed. */
      readonly transient: boolean;
      /** SHA-256 of the manifest, which tells this output from those of other attempts. */
      readonly digest: string | null;
    }
  /** `exitCause` ends the sentence "the process exited …". */
  | { readonly type: 'process-exited'; readonly exitCause: string }
  /** It was stopped for no fault of its own. */
  | { readonly type: 'stopped' };

const CANCELLED = Symbol('cancelled');

/** One run of an input, from before it is leased until its end is recorded. */
export class InputRun {
  readonly jobId: string;
  readonly abort = new AbortController();
  progress: ByteProgress = NO_PROGRESS;

  constructor(jobId: string) {
    this.jobId = jobId;
  }

  /** Stops the run; it ends as cancelled, unless it had succeeded. */
  cancel(): void {
    this.abort.abort(CANCELLED);
  }

  get cancelled(): boolean {
    return this.abort.signal.reason === CANCELLED;
  }
}

const BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 };

/** Writes what must not be lost, with retries: a full disk or an unreachable database must not cost a result. */
export class Persistence {
  readonly #log: Log;
  readonly #signal: AbortSignal;
  #fails = false;

  /** Nothing is retried after the signal is aborted; a first attempt is still made. */
  constructor(log: Log, signal: AbortSignal) {
    this.#log = log;
    this.#signal = signal;
  }

  /** False when the last write failed. */
  get works(): boolean {
    return !this.#fails;
  }

  /** Repeats a write until it succeeds. Resolves with undefined after an abort, or when the statement is wrong. */
  async write<T>(write: () => Promise<T>): Promise<T | undefined> {
    for (let failures = 1; ; failures += 1) {
      try {
        const value = await write();
        this.#fails = false;
        return value;
      } catch (error) {
        this.#log.error({ err: error }, 'the job store could not be written');
        // A statement that is wrong stays wrong: its input is taken up again when the service next starts.
        if (!(error instanceof AppError)) return undefined;
        this.#fails = true;
        if (this.#signal.aborted) return undefined;
        await pause(backoffMs(failures, BACKOFF), this.#signal).catch(() => undefined);
      }
    }
  }
}
