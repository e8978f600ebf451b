import type { ByteProgress, Claim, ResultEntry } from '../job.ts';
import type { ClaimedInput, JobRequest } from './claim-inputs.ts';
import { runPrepared } from './prepared.ts';
import type { Database } from './tables.ts';
import { eraseUrlSecrets } from './url-secrets.ts';

/** What became of an input that was delivered. */
export interface FinishedInput {
  readonly claim: Claim;
  readonly entry: ResultEntry;
  readonly progress: ByteProgress;
  /** What tells the delivered output from those of other attempts. */
  readonly digest: string | null;
  readonly deliveryId: string;
}

/** Where deliveries come from. */
export interface DeliverySource {
  /** The table that they stand in, and the name of their queue in it. */
  readonly table: string;
  readonly queue: string;
  /** The statement that takes some, and what stands in it for `$1` and so on; null where none are to be taken. */
  readonly taking: { readonly text: string; readonly values: readonly unknown[] } | null;
}

/** A delivery that was taken, whose input is claimed where it was queued and its job is not cancelled. */
export interface ExchangedDelivery {
  readonly id: string;
  readonly retryCount: number;
  readonly data: { readonly jobId: string; readonly inputIndex: number; readonly sync: boolean };
  readonly claim: ClaimedInput | null;
  /** Where the job of the input has no other. */
  readonly requestOfAlone: JobRequest | null;
  readonly hasUrlSecrets: boolean;
}

/** What an exchange brought about; an input that is not among those recorded was late. */
export interface ExchangedInputs {
  readonly taken: readonly ExchangedDelivery[];
  readonly recorded: readonly RecordedInput[];
}

interface RecordedInput {
  readonly jobId: string;
  readonly inputIndex: number;
  readonly jobEnded: boolean;
  readonly hasUrlSecrets: boolean;
}

/**
 * Records the ends of inputs and ends their deliveries, takes others and claims their inputs: by one statement of
 * PostgreSQL's own, since every other costs a round trip. Where a job has secrets to be erased it is to be called in a
 * transaction.
 */
export async function exchangeInputs(
  db: Database,
  finished: readonly FinishedInput[],
  source: DeliverySource,
): Promise<ExchangedInputs> {
  const values = source.taking?.values ?? [];
  const given = [JSON.stringify(finished.map(rowOf)), new Date().toISOString()];
  const text = exchangeText(source, values.length + 1);
  const [row] = await runPrepared<{ exchange: ExchangedInputs }>(db, text, [...values, ...given]);
  const { taken, recorded } = row?.exchange ?? { taken: [], recorded: [] };
  const endedJobs = new Map(recorded.filter(({ jobEnded }) => jobEnded).map((one) => [one.jobId, one]));
  for (const { jobId, hasUrlSecrets } of endedJobs.values()) if (hasUrlSecrets) await eraseUrlSecrets(db, jobId);
  // The end of a job is told with one of its inputs.
  return { taken, recorded: recorded.map((one) => ({ ...one, jobEnded: endedJobs.delete(one.jobId) })) };
}

function rowOf({ claim, entry, progress, digest, deliveryId }: FinishedInput) {
  return {
    job_id: claim.jobId,
    input_index: claim.inputIndex,
    attempt: claim.attempt,
    status: entry.status,
    result: JSON.stringify(entry),
    digest,
    bytes_done: progress.bytesDone,
    bytes_total: progress.bytesTotal,
    delivery_id: deliveryId,
  };
}

/** What the parts of the statement found, as `ExchangedInputs`. */
const EXCHANGED = `select json_build_object(
  'taken', coalesce((
    select json_agg(json_build_object(
      'id', delivered.id, 'retryCount', delivered."retryCount", 'data', delivered.data,
      'claim', case when claimed.id is not null then json_build_object('jobId', claimed.job_id,
        'inputIndex', claimed.input_index, 'attempt', claimed.attempt,
        'transientFailures', claimed.transient_failures, 'inputJson', claimed.input) end,
      'requestOfAlone', (
        select json_build_object('operation', operation, 'outputJson', output, 'paramsJson', params,
          'traceParent', trace_parent)
        from job_requests where job_requests.job_id = claimed.job_id and jobs.inputs_total = 1
      ),
      'hasUrlSecrets', coalesce(jobs.has_url_secrets = 1, false)))
    from delivered left join claimed on claimed.id = delivered.id left join jobs on jobs.job_id = claimed.job_id
  ), '[]'::json),
  'recorded', coalesce((
    select json_agg(json_build_object('jobId', finished.job_id, 'inputIndex', finished.input_index,
      'jobEnded', counted.finished_at is not null, 'hasUrlSecrets', coalesce(counted.has_url_secrets = 1, false)))
    from finished left join counted on counted.job_id = finished.job_id
  ), '[]'::json)
) as exchange`;

const NO_DELIVERIES = `select null::uuid as id, 0 as "retryCount", null::jsonb as data where false`;

/**
 * The jobs that a statement writes are locked in order, so that nodes which take and end inputs of the same jobs never wait
 * for each other in a circle. None is both started and counted: what ends was claimed, and its job started, before. What
 * other parts of the statement found is joined, never asked for in a condition: PostgreSQL checks the row of a job once more
 * when it had to wait for it, and such a question finds nothing then.
 */
function exchangeText({ table, queue, taking }: DeliverySource, first: number): string {
  return `
with delivered as (${taking?.text ?? NO_DELIVERIES}),
claimed as (
  update inputs set status = 'running', attempt = attempt + 1, bytes_done = 0, bytes_total = 0
  from delivered
  where inputs.job_id = delivered.data ->> 'jobId' and inputs.input_index = (delivered.data ->> 'inputIndex')::integer
    and inputs.status = 'queued'
    and exists (select from jobs where jobs.job_id = inputs.job_id and jobs.cancelled_at is null)
  returning delivered.id, inputs.job_id, inputs.input_index, inputs.attempt, inputs.transient_failures, inputs.input
),
given as (
  select * from json_to_recordset($${first}::text::json) as input(job_id text, input_index integer, attempt integer,
    status text, result text, digest text, bytes_done bigint, bytes_total bigint, delivery_id uuid)
),
finished as (
  update inputs set status = given.status, result = given.result, delivered_digest = given.digest
  from given
  where inputs.job_id = given.job_id and inputs.input_index = given.input_index and inputs.attempt = given.attempt
    and inputs.status in ('reserved', 'running')
  returning inputs.job_id, inputs.input_index, inputs.status, given.bytes_done, given.bytes_total, given.delivery_id
),
settled as (
  delete from ${table} where name = '${queue}' and id in (select delivery_id from finished)
),
sums as (
  select job_id, count(*)::integer as done, (count(*) filter (where status <> 'succeeded'))::integer as failed,
    sum(bytes_done)::bigint as bytes_done, sum(bytes_total)::bigint as bytes_total
  from finished group by job_id
),
touched as materialized (
  select job_id from sums
  union
  select claimed.job_id from claimed join jobs on jobs.job_id = claimed.job_id where jobs.status = 'queued'
),
locked as materialized (
  select jobs.job_id from touched join jobs on jobs.job_id = touched.job_id
  order by jobs.job_id for no key update of jobs
),
started as (
  update jobs set status = 'running', started_at = $${first + 1}
  from (select distinct job_id from claimed) as begun
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
    finished_at = case when jobs.inputs_done + sums.done >= jobs.inputs_total then $${first + 1} end
  from sums
  where jobs.job_id = sums.job_id and (select count(*) from locked) > 0
  returning jobs.job_id, jobs.finished_at, jobs.has_callback, jobs.has_url_secrets
),
due as (
  update callbacks set state = 'due', ended_at = counted.finished_at, next_attempt_at = counted.finished_at
  from counted
  where callbacks.job_id = counted.job_id and counted.has_callback = 1 and counted.finished_at is not null
)
${EXCHANGED}`;
}
