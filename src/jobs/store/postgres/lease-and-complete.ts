import { sql } from 'kysely';
import type { ByteProgress, InputAttempt } from '../../job.ts';
import type { ResultEntry } from '../../result-entries.ts';
import type { InputId, JobRequest, LeasedInput } from '../job-store.ts';
import type { Database } from '../tables.ts';
import { eraseUrlSecrets } from '../url-secrets.ts';

/** A finished input, to be recorded. */
export interface CompletedInput {
  readonly lease: InputAttempt;
  readonly entry: ResultEntry;
  readonly progress: ByteProgress;
  /** SHA-256 of the manifest of the output; null when there is none. */
  readonly digest: string | null;
}

/** An input that was queued, and is leased now. */
export interface NewLease {
  readonly lease: LeasedInput;
  /** The request, when the job has a single input. */
  readonly singleInputRequest: JobRequest | null;
}

/** The effects of `leaseAndComplete`. An input that is missing from `completed` was late. */
export interface LeasedAndCompleted {
  readonly leased: readonly NewLease[];
  readonly completed: readonly (InputId & { readonly jobFinished: boolean })[];
}

interface Row {
  readonly leased: readonly NewLease[];
  readonly completed: readonly (InputId & { readonly jobFinished: boolean; readonly hasUrlSecrets: boolean })[];
}

/**
 * Records the results of inputs, and leases other inputs when they are queued and their jobs are not cancelled. All in one
 * statement of PostgreSQL, because every statement costs a round trip. To be called in a transaction.
 */
export async function leaseAndComplete(
  db: Database,
  completed: readonly CompletedInput[],
  wanted: readonly InputId[],
): Promise<LeasedAndCompleted> {
  if (completed.length === 0 && wanted.length === 0) return { leased: [], completed: [] };
  const { rows } = await statementFor(completed.map(rowOf), wanted).execute(db);
  const { leased, completed: recorded } = rows[0] ?? { leased: [], completed: [] };
  const finishedJobs = new Map(recorded.filter(({ jobFinished }) => jobFinished).map((one) => [one.jobId, one]));
  for (const { jobId, hasUrlSecrets } of finishedJobs.values()) if (hasUrlSecrets) await eraseUrlSecrets(db, jobId);
  // The end of a job is reported with one of its inputs.
  const inputs = recorded.map(({ jobId, inputIndex }) => ({
    jobId,
    inputIndex,
    jobFinished: finishedJobs.delete(jobId),
  }));
  return { leased, completed: inputs };
}

function rowOf({ lease, entry, progress, digest }: CompletedInput) {
  return {
    job_id: lease.jobId,
    input_index: lease.inputIndex,
    attempt: lease.attempt,
    status: entry.status,
    result: JSON.stringify(entry),
    digest,
    bytes_done: progress.bytesDone,
    bytes_total: progress.bytesTotal,
  };
}

/**
 * Builds the one statement. It locks the jobs that it writes in order, so that nodes which lease and complete inputs of
 * the same jobs do not deadlock. No job is both started and counted: a completed input was leased, and its job started,
 * before. Results of other parts are joined, never tested by subqueries: PostgreSQL evaluates a condition again after
 * it waited for the row of a job, and a subquery finds nothing then.
 */
function statementFor(completed: readonly object[], wanted: readonly InputId[]) {
  const now = new Date().toISOString();
  return sql<Row>`
with wanted as (
  select * from json_to_recordset(${JSON.stringify(wanted)}::text::json) as input("jobId" text, "inputIndex" integer)
),
leased as (
  update inputs set status = 'running', attempt = attempt + 1, bytes_done = 0, bytes_total = 0
  from wanted
  where inputs.job_id = wanted."jobId" and inputs.input_index = wanted."inputIndex" and inputs.status = 'queued'
    and exists (select from jobs where jobs.job_id = inputs.job_id and jobs.cancelled_at is null)
  returning inputs.job_id, inputs.input_index, inputs.attempt, inputs.transient_failures, inputs.process_ends,
    inputs.input
),
given as (
  select * from json_to_recordset(${JSON.stringify(completed)}::text::json) as input(job_id text, input_index integer,
    attempt integer, status text, result text, digest text, bytes_done bigint, bytes_total bigint)
),
completed as (
  update inputs set status = given.status, result = given.result, delivered_digest = given.digest
  from given
  where inputs.job_id = given.job_id and inputs.input_index = given.input_index and inputs.attempt = given.attempt
    and inputs.status in ('reserved', 'running')
  returning inputs.job_id, inputs.input_index, inputs.status, given.bytes_done, given.bytes_total
),
sums as (
  select job_id, count(*)::integer as done, (count(*) filter (where status <> 'succeeded'))::integer as failed,
    sum(bytes_done)::bigint as bytes_done, sum(bytes_total)::bigint as bytes_total
  from completed group by job_id
),
touched as materialized (
  select job_id from sums
  union
  select leased.job_id from leased join jobs on jobs.job_id = leased.job_id where jobs.status = 'queued'
),
locked as materialized (
  select jobs.job_id from touched join jobs on jobs.job_id = touched.job_id
  order by jobs.job_id for no key update of jobs
),
started as (
  update jobs set status = 'running', started_at = ${now}
  from (select distinct job_id from leased) as begun
  where jobs.job_id = begun.job_id and jobs.status = 'queued' and (select count(*) from locked) > 0
),
counted as (
  update jobs set
    inputs_done = jobs.inputs_done + sums.done,
    inputs_failed = jobs.inputs_failed + sums.failed,
    bytes_done = jobs.bytes_done + sums.bytes_done,
    bytes_total = jobs.bytes_total + sums.bytes_total,
    status = case
      when jobs.inputs_done + sums.done < jobs.inputs_total then jobs.status
      when jobs.inputs_failed + sums.failed = 0 and jobs.cancelled_at is null then 'succeeded'
      else 'failed' end,
    finished_at = case when jobs.inputs_done + sums.done >= jobs.inputs_total then ${now} end
  from sums
  where jobs.job_id = sums.job_id and (select count(*) from locked) > 0
  returning jobs.job_id, jobs.finished_at, jobs.has_callback, jobs.has_url_secrets
),
due as (
  update callbacks set state = 'due', ended_at = counted.finished_at,
    next_attempt_at = to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  from counted
  where callbacks.job_id = counted.job_id and counted.has_callback = 1 and counted.finished_at is not null
)
select coalesce((
    select json_agg(json_build_object(
      'lease', json_build_object('jobId', leased.job_id, 'inputIndex', leased.input_index, 'attempt', leased.attempt,
        'transientFailures', leased.transient_failures, 'processExits', leased.process_ends, 'inputJson', leased.input),
      'singleInputRequest', (
        select json_build_object('operation', operation, 'outputJson', output, 'paramsJson', params,
          'traceParent', trace_parent)
        from job_requests where job_requests.job_id = leased.job_id and jobs.inputs_total = 1 and jobs.retried_from is null
      )))
    from leased join jobs on jobs.job_id = leased.job_id
  ), '[]'::json) as leased,
  coalesce((
    select json_agg(json_build_object('jobId', completed.job_id, 'inputIndex', completed.input_index,
      'jobFinished', counted.finished_at is not null, 'hasUrlSecrets', coalesce(counted.has_url_secrets = 1, false)))
    from completed left join counted on counted.job_id = completed.job_id
  ), '[]'::json) as completed`;
}
