import type { InputReport } from '#telemetry/input-report.ts';
import type { InputDispatcher } from './dispatching/input-dispatcher.ts';
import type { QueueLimits } from './dispatching/input-queue.ts';
import type { Claim } from './job.ts';
import type { Log } from './log.ts';
import type { JobStore } from './store/job-store.ts';
import type { WorkerPool } from './workers/worker-pool.ts';

/** What an engine needs to have inputs done. */
export interface DispatcherOptions {
  readonly pool: WorkerPool;
  readonly log: Log;
  readonly limits: QueueLimits;
  /** Inputs that run at once, of all jobs together; none where this node does none. */
  readonly maxRunningInputs: number;
  /** Inputs that wait at most (`worker.queue_capacity`). */
  readonly capacity: number;
  /** Removes what a claim left behind whose worker may be gone. Never rejects. */
  readonly clearStagings: (claim: Claim) => Promise<void>;
  readonly inputEnded: (report: InputReport) => void;
  /** Called when the end of a job is on the disk that was brought about here. */
  readonly jobEnded: (jobId: string) => void;
  /** Called when a job has ended anywhere; for one that ended here perhaps as well. */
  readonly jobEndedElsewhere: (jobId: string) => void;
}

/** A store, and how what is in it is handed out to be done: embedded in this process, or shared with other nodes. */
export interface JobEngine {
  readonly store: JobStore;
  /** Takes up what waits. To be called once. */
  begin(options: DispatcherOptions): Promise<InputDispatcher>;
  /** To be called when the dispatcher has stopped. */
  close(): Promise<void>;
}
