import type { JobScope } from '../caller.ts';
import type { RetriedJob } from './job-store.ts';
import { labelsIn, labelsOf } from './read-jobs.ts';
import type { Database } from './tables.ts';

/** Implements `JobStore.findRetriedJob`. */
export async function findRetriedJob(
  db: Database,
  jobId: string,
  { caller }: JobScope = {},
): Promise<RetriedJob | null> {
  const job = await db
    .selectFrom('jobs')
    .innerJoin('job_requests', 'job_requests.job_id', 'jobs.job_id')
    .select(['operation', 'output', 'params', 'caller', 'client_reference', 'finished_at'])
    .select(labelsOf(db).as('labels'))
    .where('jobs.job_id', '=', jobId)
    .$if(caller !== undefined, (jobs) => jobs.where('caller', '=', caller ?? null))
    .executeTakeFirst();
  if (job === undefined) return null;
  const failed = await db
    .selectFrom('inputs')
    .select(['input_index', 'input', 'name', 'query_erased'])
    .where('job_id', '=', jobId)
    .where('status', '=', 'failed')
    .orderBy('input_index')
    .execute();
  return {
    operation: job.operation,
    caller: job.caller,
    clientReference: job.client_reference,
    labels: labelsIn(job).labels ?? null,
    outputJson: job.output,
    paramsJson: job.params,
    isFinished: job.finished_at !== null,
    failed: failed.map(({ input_index, input, name, query_erased }) => ({
      inputIndex: input_index,
      inputJson: input,
      name: name === null ? null : (JSON.parse(name) as string),
      isErased: query_erased === 1,
    })),
  };
}
