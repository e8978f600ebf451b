import { sql } from 'kysely';
import type { JobReport } from '#telemetry/run-report.ts';
import { makeCallbackDue } from './callbacks.ts';
import { givenRows, lockOf } from './dialect.ts';
import type { Database, JobRow } from './tables.ts';
import { eraseUrlSecrets } from './url-secrets.ts';

/** A change of a job by its inputs. One that counts no input starts the job, where it is queued. */
export interface JobChange {
  readonly jobId: string;
  /** The number of inputs that are finished now. */
  readonly done: number;
  /** Of those, the ones that did not succeed. */
  readonly failed: number;
  /** Of those, the ones that were cancelled. */
  readonly cancelled: number;
  /** The reason of the first that failed; null where none did. */
  readonly firstReason: string | null;
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

/** Returns the change by the lease of an input. */
export function startOf(jobId: string): JobChange {
  return { jobId, done: 0, failed: 0, cancelled: 0, firstReason: null, bytesDone: 0, bytesTotal: 0 };
}

const COLUMNS = {
  job_id: 'text',
  done: 'integer',
  failed: 'integer',
  cancelled: 'integer',
  first_reason: 'text',
  bytes_done: 'bigint',
  bytes_total: 'bigint',
} as const;
const COUNTS = ['done', 'failed', 'cancelled', 'bytes_done', 'bytes_total'] as const;

interface UpdatedJob
  extends Pick<
    JobRow,
    'job_id' | 'status' | 'caller' | 'inputs_total' | 'queued_at' | 'finished_at' | 'has_callback' | 'has_url_secrets'
  > {
  readonly operation: string;
  readonly trace_parent: string | null;
}

/**
 * Starts jobs, counts their finished inputs, and finishes those whose inputs are all finished, with the effects of that.
 * Returns the reports of finished jobs by their identifiers. To be called after every other write of the transaction to inputs, and once: transactions lock
 * inputs first, then their jobs in order, which prevents deadlocks.
 */
export async function updateJobs(db: Database, changes: readonly JobChange[]): Promise<Map<string, JobReport>> {
  if (changes.length === 0) return new Map();
  const now = new Date().toISOString();
  const isFinished = sql`change.done > 0 and jobs.inputs_done + change.done >= jobs.inputs_total`;
  const isStarted = sql`change.done = 0 and jobs.status = 'queued'`;
  // A template, as the other statements for each input: building them took several times as long as running them.
  const { rows: updated } = await sql<UpdatedJob>`
    update jobs set
      inputs_done = jobs.inputs_done + change.done,
      inputs_failed = jobs.inputs_failed + change.failed,
      inputs_cancelled = jobs.inputs_cancelled + change.cancelled,
      first_reason = coalesce(jobs.first_reason, change.first_reason),
      bytes_done = jobs.bytes_done + change.bytes_done,
      bytes_total = jobs.bytes_total + change.bytes_total,
      status = case
        when ${isFinished} and jobs.inputs_failed + change.failed = 0 and jobs.cancelled_at is null then 'succeeded'
        when ${isFinished} then 'failed'
        when ${isStarted} then 'running'
        else jobs.status end,
      started_at = case when ${isStarted} then ${now} else jobs.started_at end,
      finished_at = case when ${isFinished} then ${now} else jobs.finished_at end
    from ${lockedChanges(db, changesByJob(changes))} as change
    where jobs.job_id = change.job_id
    returning jobs.job_id, jobs.status, jobs.caller, jobs.inputs_total, jobs.queued_at, jobs.finished_at,
      jobs.has_callback, jobs.has_url_secrets,
      (select operation from job_requests where job_requests.job_id = jobs.job_id) as operation,
      (select trace_parent from job_requests where job_requests.job_id = jobs.job_id) as trace_parent`.execute(db);
  const finished = updated.filter((job) => job.finished_at === now);
  for (const { job_id: jobId, has_callback, has_url_secrets } of finished) {
    if (has_url_secrets === 1) await eraseUrlSecrets(db, jobId);
    if (has_callback === 1) await makeCallbackDue(db, jobId, now);
  }
  return new Map(finished.map((job) => [job.job_id, reportOf(job, now)]));
}

function reportOf(job: UpdatedJob, finishedAt: string): JobReport {
  return {
    jobId: job.job_id,
    operation: job.operation,
    caller: job.caller,
    status: job.status === 'succeeded' ? 'succeeded' : 'failed',
    inputs: job.inputs_total,
    queuedAtMs: Date.parse(job.queued_at),
    finishedAtMs: Date.parse(finishedAt),
    traceParent: job.trace_parent,
  };
}

/** Makes a subquery of changes, which locks their jobs in order when there are several. */
function lockedChanges(db: Database, rows: readonly ReturnType<typeof rowOf>[]) {
  const given = givenRows(db, COLUMNS, rows);
  if (rows.length === 1) return given;
  return sql`(
    select given.* from ${given} as given join jobs on jobs.job_id = given.job_id
    order by jobs.job_id ${lockOf(db, 'jobs')})`;
}

/** Adds up the changes of each job. */
function changesByJob(changes: readonly JobChange[]) {
  const byJob = new Map<string, ReturnType<typeof rowOf>>();
  for (const change of changes) {
    const row = rowOf(change);
    const sum = byJob.get(change.jobId);
    if (sum === undefined) byJob.set(change.jobId, row);
    else {
      for (const column of COUNTS) sum[column] += row[column];
      sum.first_reason ??= row.first_reason;
    }
  }
  return [...byJob.values()];
}

function rowOf({ jobId, done, failed, cancelled, firstReason, bytesDone, bytesTotal }: JobChange) {
  const counts = { done, failed, cancelled, bytes_done: bytesDone, bytes_total: bytesTotal };
  return { job_id: jobId, first_reason: firstReason, ...counts };
}
