import type { JobStatus } from '#contract/job.ts';
import type { Database } from './tables.ts';

/** The job that an idempotency key stands for. */
export interface RecalledJob {
  readonly jobId: string;
  readonly status: JobStatus;
  /** Of what was asked for with the key. */
  readonly digest: string;
}

/** The job that was submitted with an idempotency key; null where none is known. */
export async function recallJob(db: Database, key: string): Promise<RecalledJob | null> {
  const job = await db
    .selectFrom('jobs')
    .select(['job_id as jobId', 'status', 'request_digest as digest'])
    .where('idempotency_key', '=', key)
    .executeTakeFirst();
  return job === undefined ? null : { ...job, digest: job.digest ?? '' };
}
