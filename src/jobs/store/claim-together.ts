import type { ClaimedInput, JobRequest } from './claim-inputs.ts';
import { runPrepared } from './prepared.ts';
import type { Database } from './tables.ts';

/** An input of a job, by how the job names it. */
interface NamedInput {
  readonly jobId: string;
  readonly inputIndex: number;
}

type ClaimedRow = ClaimedInput & { readonly request: JobRequest | null };

/**
 * Claims those of the inputs that are queued, unless their jobs are cancelled, and starts their jobs, by one statement of
 * PostgreSQL's own: every other costs a round trip. `requestOfAlone`: where a job has no other input.
 */
export async function claimTogether(
  db: Database,
  inputs: readonly NamedInput[],
): Promise<readonly { readonly claim: ClaimedInput; readonly requestOfAlone: JobRequest | null }[]> {
  const named = JSON.stringify(inputs.map(({ jobId, inputIndex }) => ({ job_id: jobId, input_index: inputIndex })));
  const rows = await runPrepared<ClaimedRow>(db, CLAIM, [named, new Date().toISOString()]);
  return rows.map(({ request, ...claim }) => ({ claim, requestOfAlone: request }));
}

const CLAIM = `
with claimed as (
  update inputs set status = 'running', attempt = attempt + 1, bytes_done = 0, bytes_total = 0
  from json_to_recordset($1::text::json) as given(job_id text, input_index integer)
  where inputs.job_id = given.job_id and inputs.input_index = given.input_index and inputs.status = 'queued'
    and exists (select from jobs where jobs.job_id = given.job_id and jobs.cancelled_at is null)
  returning inputs.job_id, inputs.input_index, inputs.attempt, inputs.transient_failures, inputs.input
),
started as (
  update jobs set status = 'running', started_at = $2
  where jobs.job_id in (select job_id from claimed) and jobs.status = 'queued'
)
select claimed.job_id as "jobId", claimed.input_index as "inputIndex", claimed.attempt,
  claimed.transient_failures as "transientFailures", claimed.input as "inputJson",
  (
    select json_build_object('operation', operation, 'outputJson', output, 'paramsJson', params,
      'traceParent', trace_parent)
    from job_requests
    where job_requests.job_id = claimed.job_id
      and (select inputs_total from jobs where jobs.job_id = claimed.job_id) = 1
  ) as request
from claimed`;
