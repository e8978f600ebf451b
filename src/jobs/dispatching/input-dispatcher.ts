import type { ByteProgress } from '../job.ts';

/**
 * Has the inputs done that wait: in this process alone (`Dispatcher`), or shared with other nodes
 * (`ClusterDispatcher`). What the store holds is the truth; a dispatcher only decides what runs here, and sees it through.
 */
export interface InputDispatcher {
  /** Whether what was written last could be written. */
  readonly storeWorks: boolean;
  /** Inputs that wait, as far as is known here. */
  readonly waiting: number;
  /** Inputs that run here, or are about to. */
  readonly running: number;
  /**
   * Makes room in the queue for inputs that are about to be recorded, or throws QUEUE_FULL, or JOB_EXCEEDS_QUEUE where it
   * could never be.
   */
  reserve(count: number): void;
  /** Gives back room that was reserved for inputs which could not be recorded. */
  unreserve(count: number): void;
  /** Queues inputs that are recorded and have room. */
  enqueue(jobId: string, sync: boolean, count: number, caller: string | null): void;
  /** Starts nothing more of a job, which is about to be cancelled or not, until the function that it returns is called. */
  hold(jobId: string): () => void;
  /**
   * Takes note that a job is cancelled: starts nothing more of it, and stops what runs within the bound of an abort;
   * each of those ends as cancelled. To be called when the store has the job's queued and reserved inputs as cancelled;
   * `jobEnded` where that ended it.
   */
  cancel(jobId: string, jobEnded: boolean): void;
  /** How far the inputs of a job are that run here, together, as far as the store does not know. */
  progressOf(jobId: string): ByteProgress;
  /** Starts nothing more, lets what runs end within the grace, and queues the rest again. */
  stop(graceMs: number): Promise<void>;
}
