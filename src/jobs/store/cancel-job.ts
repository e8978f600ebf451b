import type { JobScope } from '../caller.ts';
import { endJobWhereDone } from './end-job.ts';
import type { Database } from './tables.ts';

/** What cancelling a job brought about. */
export interface JobCancel {
  /** False where the job had ended or was cancelled before; nothing was written then. */
  readonly changed: boolean;
  /** True where nothing of it was running, so that it has ended. */
  readonly jobEnded: boolean;
}

const UNCHANGED: JobCancel = { changed: false, jobEnded: false };

/**
 * Cancels a job: its inputs that are queued or reserved end at once; those that run are left to whoever runs them.
 * Null where there is no such job in the scope.
 */
export async function cancelJob(db: Database, jobId: string, { caller }: JobScope = {}): Promise<JobCancel | null> {
  const job = await db
    .selectFrom('jobs')
    .select(['finished_at', 'cancelled_at'])
    .where('job_id', '=', jobId)
    .$if(caller !== undefined, (jobs) => jobs.where('caller', '=', caller ?? null))
    .executeTakeFirst();
  if (job === undefined) return null;
  if (job.finished_at !== null || job.cancelled_at !== null) return UNCHANGED;
  // Inputs first, then their job: every transaction locks in this order, so none waits for another in a circle.
  const { numUpdatedRows } = await db
    .updateTable('inputs')
    .set({ status: 'cancelled' })
    .where('job_id', '=', jobId)
    .where('status', 'in', ['queued', 'reserved'])
    .executeTakeFirst();
  const count = Number(numUpdatedRows);
  const counted = await db
    .updateTable('jobs')
    .set(({ eb }) => ({
      cancelled_at: new Date().toISOString(),
      inputs_done: eb('inputs_done', '+', count),
      inputs_failed: eb('inputs_failed', '+', count),
    }))
    .where('job_id', '=', jobId)
    .where('finished_at', 'is', null)
    .where('cancelled_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
  // It ended, or was cancelled, between the first look and this one.
  if (counted === undefined) return UNCHANGED;
  return { changed: true, jobEnded: await endJobWhereDone(db, counted) };
}

/** Which of these jobs are cancelled. Whoever runs inputs of jobs that others may cancel asks for them. */
export async function cancelledAmong(db: Database, jobIds: readonly string[]): Promise<readonly string[]> {
  if (jobIds.length === 0) return [];
  const cancelled = await db
    .selectFrom('jobs')
    .select('job_id')
    .where('job_id', 'in', jobIds)
    .where('cancelled_at', 'is not', null)
    .execute();
  return cancelled.map((job) => job.job_id);
}

/** Whether a job is cancelled. */
export async function isCancelled(db: Database, jobId: string): Promise<boolean> {
  return (await cancelledAmong(db, [jobId])).length > 0;
}
