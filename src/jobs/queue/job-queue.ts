import type { ByteProgress } from '#operations/operation.ts';
import type { JobReport } from '#telemetry/run-report.ts';
import type { InputAttempt } from '../job.ts';
import type { FinishedInput, HandedIn, JobStore, LeasedInput, LeaseFilter, ReleasedInput } from '../store/job-store.ts';
import type { SeenNode } from './node-registry.ts';

/**
 * The queue of inputs, which the scheduler pulls from. There are two: in the embedded database for one process, and on
 * PostgreSQL for several nodes. `test/jobs/queue-contract.ts` runs on both.
 *
 * Obligations:
 * - Inputs come from the store: those of a submission that resolved are leased, also after the process was killed.
 * - Inputs are leased in the order of their priorities (`priority.ts`). Every eighth lease prefers low ones.
 * - An input is leased by one process at a time, and never after its job was cancelled.
 * - A lease is fenced by its attempt number: a result or release for a lease that is not the newest one changes nothing.
 * - Methods reject with an AppError when the database cannot be used. Any other error is a defect that a retry cannot help.
 */
export interface JobQueue {
  /** True when other nodes lease inputs of the same jobs. Then leases expire, and output paths are reserved in the store. */
  readonly isShared: boolean;

  /** The interval of renewals, in milliseconds. */
  readonly renewalIntervalMs: number;

  /** The events of this queue, for one reader. They are hints: one that is missed is made up for by a later look. */
  readonly events: AsyncIterable<QueueEvent>;

  /** Leases up to `count` inputs. Fewer when no others are queued; there may be more soon. */
  lease(request: LeaseRequest): Promise<NewLeases>;

  /** Renews the leases of running inputs, and records their progress. Returns the runs to stop. */
  renew(running: readonly (InputAttempt & ByteProgress)[]): Promise<Renewal>;

  /**
   * Resolves with true when the output of a leased input may be committed now. Waits while the database cannot be reached: it
   * may come back, and the lease still hold. Resolves with false when the lease is lost or the signal is aborted.
   */
  mayCommit(lease: InputAttempt, signal: AbortSignal): Promise<boolean>;

  /** Records the result of an input, and finishes its job where it is the last one. */
  finish(result: FinishedInput): Promise<HandedIn>;

  /** Returns a leased input without a result, which is queued again: at once, or at `retryAt`. */
  release(input: ReleasedInput): Promise<HandedIn>;

  /** Stops looking for work, and queues inputs again that it leased ahead. To be called when all leases are handed in. */
  close(): Promise<void>;
}

/** Says how many inputs are leased, and of which jobs. */
export interface LeaseRequest extends LeaseFilter {
  readonly count: number;
}

export interface NewLeases {
  readonly inputs: readonly LeasedInput[];
  /** The jobs that finished because their last inputs could not be leased any more. */
  readonly finishedJobs: readonly JobReport[];
}

export interface Renewal {
  /** The leases that another node may have taken over. */
  readonly lost: readonly InputAttempt[];
  /** The jobs of running inputs that are cancelled. */
  readonly cancelledJobs: readonly string[];
}

/** `work`: inputs may have been queued; `finished`: a job finished, perhaps on another node. */
export type QueueEvent =
  | { readonly type: 'work' }
  | { readonly type: 'cancelled'; readonly jobId: string }
  | { readonly type: 'finished'; readonly jobId: string };

/** An open store with its queue: embedded in this process, or shared with other nodes. */
export interface JobEngine {
  readonly store: JobStore;
  readonly queue: JobQueue;
  /**
   * Returns the other nodes that were seen within an hour and did not stop in order; null while the database cannot be
   * reached. The embedded store has none.
   */
  readonly otherNodes: () => readonly SeenNode[] | null;
  /** Closes the queue, then the store. */
  close(): Promise<void>;
}

/** Joins a store with its queue, which submits and cancels jobs. It knows no other nodes. */
export function engineOf(store: JobStore, queue: JobQueue & Pick<JobStore, 'submitJob' | 'cancelJob'>): JobEngine {
  const close = async () => {
    await queue.close();
    await store.close();
  };
  const submitJob: JobStore['submitJob'] = (job) => queue.submitJob(job);
  const cancelJob: JobStore['cancelJob'] = (jobId, scope) => queue.cancelJob(jobId, scope);
  return { store: { ...store, submitJob, cancelJob, close }, queue, otherNodes: () => [], close };
}

/** The stream of events of a queue. */
export class QueueEvents {
  readonly stream: ReadableStream<QueueEvent>;
  #controller: ReadableStreamDefaultController<QueueEvent> | undefined;

  constructor() {
    this.stream = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
    });
  }

  push(event: QueueEvent): void {
    this.#controller?.enqueue(event);
  }

  /** Ends the stream after the events so far. Events that come later are dropped. */
  close(): void {
    this.#controller?.close();
    this.#controller = undefined;
  }
}
