import type { ApiInputRef } from '#contract/request.ts';
import type { ResultEntry } from '../job.ts';
import type { ClaimedInput, JobRequest } from './claim-inputs.ts';
import type { Database } from './tables.ts';

/** More jobs of one caller are not passed over: they stand in a statement. */
const MAX_JOBS_OF_CALLERS = 10_000;

/** A job with inputs that wait to be started. */
export interface WaitingJob {
  readonly jobId: string;
  readonly sync: boolean;
  /** The name of who submitted it; null where no tokens were set. */
  readonly caller: string | null;
  /** Inputs that are queued. */
  readonly waiting: number;
}

/** Every job that has queued inputs, oldest first. */
export async function waitingJobs(db: Database): Promise<readonly WaitingJob[]> {
  const jobs = await db
    .selectFrom('inputs')
    .innerJoin('jobs', 'jobs.job_id', 'inputs.job_id')
    .select(({ fn }) => ['jobs.job_id', 'jobs.sync', 'jobs.caller', fn.countAll<number>().as('waiting')])
    .where('inputs.status', '=', 'queued')
    .groupBy(['jobs.job_id', 'jobs.sync', 'jobs.caller'])
    .orderBy('jobs.job_id')
    .execute();
  return jobs.map(({ job_id: jobId, sync, caller, waiting }) => ({
    jobId,
    sync: sync === 1,
    caller,
    waiting: Number(waiting),
  }));
}

/**
 * The unfinished jobs of the named callers of these jobs, up to a limit, with these jobs themselves: what is to be passed
 * over where only other callers are served.
 */
export async function jobsOfSameCallers(db: Database, jobIds: readonly string[]): Promise<readonly string[]> {
  if (jobIds.length === 0) return [];
  const jobs = await db
    .selectFrom('jobs')
    .select('job_id')
    .where('status', 'in', ['queued', 'running'])
    .where('caller', 'in', ({ selectFrom }) =>
      selectFrom('jobs as given')
        .select('given.caller')
        .where('given.job_id', 'in', [...jobIds]),
    )
    .limit(MAX_JOBS_OF_CALLERS)
    .execute();
  return [...new Set([...jobIds, ...jobs.map(({ job_id: jobId }) => jobId)])];
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
