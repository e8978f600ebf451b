import { yieldingEntries } from '#concurrency/map-concurrent.ts';
import type { JobScope } from '../caller.ts';
import type { RecordedRequest } from './job-store.ts';
import { labelsIn, labelsOf } from './read-jobs.ts';
import type { Database } from './tables.ts';
import { withoutQueries } from './url-secrets.ts';

/** Implements `JobStore.findRequest`. */
export async function findRequest(
  db: Database,
  jobId: string,
  { caller }: JobScope = {},
): Promise<RecordedRequest | null> {
  const job = await db
    .selectFrom('jobs')
    .innerJoin('job_requests', 'job_requests.job_id', 'jobs.job_id')
    .select(['operation', 'output', 'params', 'client_reference', labelsOf(db).as('labels')])
    .where('jobs.job_id', '=', jobId)
    .$if(caller !== undefined, (jobs) => jobs.where('caller', '=', caller ?? null))
    .executeTakeFirst();
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
