import type { JobStatus } from '#contract/job.ts';
import type { ListedJob } from '#contract/job-list.ts';
import type { JobScope } from '../caller.ts';
import { listedJob } from './find-job.ts';
import type { Database } from './tables.ts';

/** Which jobs are listed. */
export interface ListedJobs extends JobScope {
  readonly limit: number;
  readonly status?: JobStatus;
  /** Only jobs that were submitted before this one. */
  readonly before?: string;
}

export interface JobPage {
  readonly jobs: readonly ListedJob[];
  /** Whether there are older ones. */
  readonly more: boolean;
}

/** A page of jobs, newest first: identifiers sort by the time of submission. */
export async function listJobs(db: Database, { limit, status, before, caller }: ListedJobs): Promise<JobPage> {
  let query = db
    .selectFrom('jobs')
    .selectAll()
    .orderBy('job_id', 'desc')
    .limit(limit + 1);
  if (caller !== undefined) query = query.where('caller', '=', caller);
  if (status !== undefined) query = query.where('status', '=', status);
  if (before !== undefined) query = query.where('job_id', '<', before);
  const rows = await query.execute();
  return { jobs: rows.slice(0, limit).map(listedJob), more: rows.length > limit };
}
