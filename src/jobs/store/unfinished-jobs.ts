import type { ApiInputRef } from '#contract/request.ts';
import type { ResultEntry } from '../job.ts';
import type { ClaimedInput, JobRequest } from './claim-inputs.ts';
import type { Database } from './tables.ts';

/** A job with inputs that wait to be started. */
export interface WaitingJob {
  readonly jobId: string;
  readonly sync: boolean;
  /** Inputs that are queued. */
  readonly waiting: number;
}

/** Every job that has queued inputs, oldest first. */
export async function waitingJobs(db: Database): Promise<readonly WaitingJob[]> {
  const jobs = await db
    .selectFrom('inputs')
    .innerJoin('jobs', 'jobs.job_id', 'inputs.job_id')
    .select(({ fn }) => ['jobs.job_id', 'jobs.sync', fn.countAll<number>().as('waiting')])
    .where('inputs.status', '=', 'queued')
    .groupBy(['jobs.job_id', 'jobs.sync'])
    .orderBy('jobs.job_id')
    .execute();
  return jobs.map((job) => ({ jobId: job.job_id, sync: job.sync === 1, waiting: Number(job.waiting) }));
}

/** What a job reads and what it has written so far. */
export interface JobPlaces {
  readonly inputs: readonly ApiInputRef[];
  /** The request's `params`. */
  readonly params: unknown;
  readonly outputs: readonly { readonly inputIndex: number; readonly outputPath: string }[];
}

/** The places of a job, for a ledger of its destinations. */
export async function placesOfJob(db: Database, jobId: string): Promise<JobPlaces> {
  const request = await db.selectFrom('job_requests').select('params').where('job_id', '=', jobId).executeTakeFirst();
  const rows = await db
    .selectFrom('inputs')
    .select(['input', 'result'])
    .where('job_id', '=', jobId)
    .orderBy('input_index')
    .execute();
  const results = rows.flatMap(({ result }) => (result === null ? [] : [JSON.parse(result) as ResultEntry]));
  return {
    inputs: rows.map(({ input }) => JSON.parse(input) as ApiInputRef),
    params: JSON.parse(request?.params ?? 'null'),
    outputs: results.flatMap(({ input_index, output_path }) =>
      output_path === undefined ? [] : [{ inputIndex: input_index, outputPath: output_path }],
    ),
  };
}

/** The places of a job whose only input runs. */
export function placesOfAlone({ inputJson }: ClaimedInput, { paramsJson }: JobRequest): JobPlaces {
  return { inputs: [JSON.parse(inputJson)], params: JSON.parse(paramsJson), outputs: [] };
}
