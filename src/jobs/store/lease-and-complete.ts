import { type FinishedInput, recordResults } from './finish-input.ts';
import type { InputId } from './job-store.ts';
import { leaseQueued, type NewLease } from './lease-inputs.ts';
import type { Database } from './tables.ts';
import { updateJobs } from './update-jobs.ts';

/** The effects of `leaseAndComplete`. An input that is missing from `completed` was late. */
export interface LeasedAndCompleted {
  readonly leased: readonly NewLease[];
  readonly completed: readonly (InputId & { readonly jobFinished: boolean })[];
}

/**
 * Records the results of inputs, and leases other inputs when they are queued and their jobs are not cancelled. Statements
 * are for all of them together, because every statement costs a round trip. To be called in a transaction.
 */
export async function leaseAndComplete(
  db: Database,
  completed: readonly FinishedInput[],
  wanted: readonly InputId[],
): Promise<LeasedAndCompleted> {
  const { leased, starts } = await leaseQueued(db, wanted);
  const recorded = await recordResults(db, completed);
  const finished = new Set(await updateJobs(db, [...starts, ...recorded]));
  // The end of a job is reported with one of its inputs.
  const inputs = recorded.map(({ jobId, inputIndex }) => ({ jobId, inputIndex, jobFinished: finished.delete(jobId) }));
  return { leased, completed: inputs };
}
