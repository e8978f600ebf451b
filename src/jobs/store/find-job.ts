import type { ListedJob } from '#contract/job-list.ts';
import type { JobScope } from '../caller.ts';
import type { JobSnapshot } from '../job.ts';
import { isPostgres } from './dialect.ts';
import { entriesOfJob } from './ended-inputs.ts';
import { type Found, type FoundJob, findTogether } from './find-together.ts';
import type { Database } from './tables.ts';

/** A job as it was last recorded, in the contract's shape; null where there is none in the scope. */
export async function findJob(db: Database, jobId: string, scope: JobScope = {}): Promise<JobSnapshot | null> {
  const found = await (isPostgres(db) ? findTogether(db, jobId, scope) : findInSteps(db, jobId, scope));
  return found === null ? null : { ...listedJob(found.job), resultsJson: found.resultsJson ?? '[]' };
}

/** In an embedded store, what of a job runs is known only to its process. */
async function findInSteps(db: Database, jobId: string, { caller }: JobScope): Promise<Found | null> {
  const job = await db
    .selectFrom('jobs')
    .selectAll()
    .where('job_id', '=', jobId)
    .$if(caller !== undefined, (jobs) => jobs.where('caller', '=', caller ?? null))
    .executeTakeFirst();
  if (job === undefined) return null;
  return { job, resultsJson: job.finished_at === null ? null : await entriesOfJob(db, jobId) };
}

/** A job without its results, in the contract's shape. */
export function listedJob(job: FoundJob): ListedJob {
  return {
    job_id: job.job_id,
    status: job.status,
    ...(job.caller !== null && { caller: job.caller }),
    timing: timingOf(job),
    ...(job.finished_at === null && { progress: progressOf(job) }),
  };
}

/** At most so many jobs are asked about in one statement; engines bound the values of a statement. */
const JOBS_PER_QUESTION = 1000;

/** Which of these jobs have ended, or are gone. */
export async function endedAmong(db: Database, jobIds: readonly string[]): Promise<readonly string[]> {
  const ended: string[] = [];
  for (let start = 0; start < jobIds.length; start += JOBS_PER_QUESTION) {
    const asked = jobIds.slice(start, start + JOBS_PER_QUESTION);
    const unfinished = await db
      .selectFrom('jobs')
      .select('job_id')
      .where('job_id', 'in', asked)
      .where('finished_at', 'is', null)
      .execute();
    const open = new Set(unfinished.map((job) => job.job_id));
    ended.push(...asked.filter((jobId) => !open.has(jobId)));
  }
  return ended;
}

function timingOf({ queued_at, started_at, finished_at }: FoundJob): JobSnapshot['timing'] {
  return { queued_at, ...(started_at !== null && { started_at }), ...(finished_at !== null && { finished_at }) };
}

function progressOf(job: FoundJob): NonNullable<JobSnapshot['progress']> {
  return {
    inputs_done: job.inputs_done,
    inputs_total: job.inputs_total,
    bytes_done: job.bytes_done,
    bytes_total: job.bytes_total,
  };
}
