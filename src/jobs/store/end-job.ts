import { makeCallbackDue } from './callbacks.ts';
import type { Database, JobRow } from './tables.ts';
import { eraseUrlSecrets } from './url-secrets.ts';

/** What is counted of a job, and what is to be done when it ends. */
export type JobCount = Pick<
  JobRow,
  'job_id' | 'inputs_done' | 'inputs_total' | 'inputs_failed' | 'cancelled_at' | 'has_url_secrets' | 'has_callback'
>;

/** Ends a job whose inputs are all done, in the transaction that counted the last of them; false where some are not. */
export async function endJobWhereDone(db: Database, job: JobCount): Promise<boolean> {
  if (job.inputs_done < job.inputs_total) return false;
  const succeeded = job.inputs_failed === 0 && job.cancelled_at === null;
  const endedAt = new Date().toISOString();
  await db
    .updateTable('jobs')
    .set({ status: succeeded ? 'succeeded' : 'failed', finished_at: endedAt })
    .where('job_id', '=', job.job_id)
    .execute();
  if (job.has_url_secrets === 1) await eraseUrlSecrets(db, job.job_id);
  if (job.has_callback === 1) await makeCallbackDue(db, job.job_id, endedAt);
  return true;
}
