import type { Database } from './tables.ts';

/** At most so many jobs, and inputs of theirs, are deleted in one transaction, so that nothing waits long for it. */
const MAX_JOBS_AT_ONCE = 200;
const MAX_INPUTS_AT_ONCE = 2000;

/** Deletes some of the jobs that ended before a time, oldest first; resolves with how many, 0 when none are left. */
export async function pruneSomeJobs(db: Database, endedBefore: Date): Promise<number> {
  const ended = await db
    .selectFrom('jobs')
    .select(['job_id', 'inputs_total'])
    .where('finished_at', '<', endedBefore.toISOString())
    // A callback that is still tried again needs its job; it is given up within a day.
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('callbacks')
            .select('callbacks.job_id')
            .whereRef('callbacks.job_id', '=', 'jobs.job_id')
            .where('next_attempt_at', 'is not', null),
        ),
      ),
    )
    .orderBy('finished_at')
    .limit(MAX_JOBS_AT_ONCE)
    .execute();
  const few: typeof ended = [];
  let inputs = 0;
  for (const job of ended) {
    inputs += job.inputs_total;
    if (few.length > 0 && inputs > MAX_INPUTS_AT_ONCE) break;
    few.push(job);
  }
  if (few.length === 0) return 0;
  const jobIds = few.map((job) => job.job_id);
  await db.deleteFrom('jobs').where('job_id', 'in', jobIds).execute();
  return few.length;
}
