import { firstJobIdAt } from '../job-ids.ts';
import type { JobPage } from './job-store.ts';
import { listJobs } from './read-jobs.ts';
import type { Database } from './tables.ts';

/** Implements `JobStore.recentJobs`. Each part is read by an index, so that the cost does not grow with the history. */
export async function recentJobs(db: Database, since: Date, limit: number): Promise<JobPage> {
  const ids = () =>
    db
      .selectFrom('jobs')
      .select('job_id')
      .limit(limit + 1);
  const parts = [
    ids().where('job_id', '>=', firstJobIdAt(since)).orderBy('job_id', 'desc'),
    ids().where('status', '=', 'running').orderBy('job_id', 'desc'),
    ids().where('finished_at', '>=', since.toISOString()).orderBy('finished_at', 'desc'),
  ];
  const jobIds = new Set<string>();
  for (const part of parts) for (const job of await part.execute()) jobIds.add(job.job_id);
  return jobIds.size === 0 ? { jobs: [], more: false } : await listJobs(db, { limit, jobIds: [...jobIds] });
}
