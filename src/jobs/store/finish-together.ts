import type { ByteProgress, Claim, ResultEntry } from '../job.ts';
import { attendToEnd } from './end-job.ts';
import { runPrepared } from './prepared.ts';
import type { Database } from './tables.ts';

/** What became of an input. */
export interface FinishedInput {
  readonly claim: Claim;
  readonly entry: ResultEntry;
  readonly progress: ByteProgress;
  /** What tells the delivered output from those of other attempts. */
  readonly digest: string | null;
}

/** An input whose end was recorded, with what there is to do where it was the last of its job. */
interface RecordedInput {
  readonly job_id: string;
  readonly input_index: number;
  readonly finished_at: string | null;
  readonly has_callback: number;
  readonly has_url_secrets: number;
}

/**
 * Records the ends of inputs, and counts them, by one statement of PostgreSQL's own: every other costs a round trip. Resolves
 * with those that were current, and whether their jobs have ended. The jobs are locked in order, so that nodes which
 * record ends of the same jobs never wait for each other in a circle.
 */
export async function finishTogether(
  db: Database,
  finished: readonly FinishedInput[],
): Promise<readonly { readonly jobId: string; readonly inputIndex: number; readonly jobEnded: boolean }[]> {
  const now = new Date().toISOString();
  const rows = await runPrepared<RecordedInput>(db, FINISH, [JSON.stringify(finished.map(given)), now]);
  const endedJobs = new Map(rows.filter((row) => row.finished_at !== null).map((row) => [row.job_id, row]));
  for (const job of endedJobs.values()) await attendToEnd(db, job, now);
  return rows.map(({ job_id, input_index }) => ({
    jobId: job_id,
    inputIndex: input_index,
    // Told once of each.
    jobEnded: endedJobs.delete(job_id),
  }));
}

function given({ claim, entry, progress, digest }: FinishedInput) {
  return {
    job_id: claim.jobId,
    input_index: claim.inputIndex,
    attempt: claim.attempt,
    status: entry.status,
    result: JSON.stringify(entry),
    digest,
    bytes_done: progress.bytesDone,
    bytes_total: progress.bytesTotal,
  };
}

const FINISH = `
with given as (
  select * from json_to_recordset($1::text::json) as input(job_id text, input_index integer, attempt integer,
    status text, result text, digest text, bytes_done bigint, bytes_total bigint)
),
ended as (
  update inputs set status = given.status, result = given.result, delivered_digest = given.digest
  from given
  where inputs.job_id = given.job_id and inputs.input_index = given.input_index and inputs.attempt = given.attempt
    and inputs.status in ('reserved', 'running')
  returning inputs.job_id, inputs.input_index, inputs.status, given.bytes_done, given.bytes_total
),
sums as (
  select job_id, count(*)::integer as done, (count(*) filter (where status <> 'succeeded'))::integer as failed,
    sum(bytes_done)::bigint as bytes_done, sum(bytes_total)::bigint as bytes_total
  from ended group by job_id
),
locked as materialized (
  select job_id from jobs where job_id in (select job_id from sums) order by job_id for no key update
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
    finished_at = case when jobs.inputs_done + sums.done >= jobs.inputs_total then $2 end
  from sums
  where jobs.job_id = sums.job_id and (select count(*) from locked) > 0
  returning jobs.job_id, jobs.finished_at, jobs.has_callback, jobs.has_url_secrets
)
select ended.input_index, counted.* from ended join counted on counted.job_id = ended.job_id`;
