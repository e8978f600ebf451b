import { yieldingEntries } from '#concurrency/map-concurrent.ts';
import type { JobScope } from '../caller.ts';
import { labelsOf, reasonOf } from './dialect.ts';
import type { RecordedRequest, RetriedJob } from './job-store.ts';
import { labelsIn } from './read-jobs.ts';
import type { Database } from './tables.ts';
import { withoutQueries } from './url-secrets.ts';

/** Implements `JobStore.findRequest`. */
export async function findRequest(db: Database, jobId: string, scope: JobScope = {}): Promise<RecordedRequest | null> {
  const job = await requestedJob(db, jobId, scope);
  if (job === undefined) return null;
  const rows = await db
    .selectFrom('inputs')
    .select('input')
    .where('job_id', '=', jobId)
    .orderBy('input_index')
    .execute();
  const inputs: string[] = [];
  for await (const [, { input }] of yieldingEntries(rows)) inputs.push(withoutQueriesIn(input));
  const { labels } = labelsIn(job);
  const fields = {
    output: job.output,
    params: withoutQueriesIn(job.params),
    client_reference: JSON.stringify(job.client_reference),
    labels: JSON.stringify(labels ?? null),
  };
  const given = Object.entries(fields).filter(([, json]) => json !== 'null');
  const members = [`"inputs":[${inputs.join(',')}]`, ...given.map(([name, json]) => `"${name}":${json}`)];
  return { operation: job.operation, bodyJson: `{${members.join(',')}}` };
}

function withoutQueriesIn(json: string): string {
  return JSON.stringify(withoutQueries(JSON.parse(json)));
}

/** Implements `JobStore.findRetriedJob`. */
export async function findRetriedJob(db: Database, jobId: string, scope: JobScope = {}): Promise<RetriedJob | null> {
  const job = await requestedJob(db, jobId, scope);
  if (job === undefined) return null;
  const unsuccessful = await db
    .selectFrom('inputs')
    .select(['input_index', 'status', 'input', 'name', 'query_erased', 'retried_by', reasonOf(db).as('reason')])
    .where('job_id', '=', jobId)
    .where('status', 'in', ['failed', 'cancelled'])
    .orderBy('input_index')
    .execute();
  return {
    operation: job.operation,
    caller: job.caller,
    identity: job.identity,
    clientReference: job.client_reference,
    labels: labelsIn(job).labels ?? null,
    outputJson: job.output,
    paramsJson: job.params,
    isFinished: job.finished_at !== null,
    inputCount: job.inputs_total,
    unsuccessful: unsuccessful.map(({ input_index, status, input, name, query_erased, retried_by, reason }) => ({
      inputIndex: input_index,
      status: status === 'failed' ? status : 'cancelled',
      reason,
      isRetried: retried_by !== null,
      inputJson: input,
      name: name === null ? null : (JSON.parse(name) as string),
      isErased: query_erased === 1,
    })),
  };
}

/** Reads a job in the scope with the part of its request that all inputs share; undefined where there is none. */
function requestedJob(db: Database, jobId: string, { caller }: JobScope) {
  return db
    .selectFrom('jobs')
    .innerJoin('job_requests', 'job_requests.job_id', 'jobs.job_id')
    .select(['operation', 'output', 'params', 'caller', 'identity', 'client_reference', 'finished_at', 'inputs_total'])
    .select(labelsOf(db).as('labels'))
    .where('jobs.job_id', '=', jobId)
    .$if(caller !== undefined, (jobs) => jobs.where('caller', '=', caller ?? null))
    .executeTakeFirst();
}
