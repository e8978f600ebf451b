import { sql } from 'kysely';
import type { RetriedInputs } from '../job.ts';
import { givenRows, reasonOf, withoutIndex } from './dialect.ts';
import type { FailureFilter, KnownJob, NewJob } from './job-store.ts';
import type { Database } from './tables.ts';

/** Implements `JobStore.findFailedJobs`. */
export async function findFailedJobs(
  db: Database,
  filter: FailureFilter,
  limit: number,
  after = '',
): Promise<readonly string[]> {
  const jobs = await failedInputs(db, filter)
    .select('jobs.job_id')
    .distinct()
    .where('retried_by', 'is', null)
    .where('query_erased', '=', 0)
    .where('jobs.job_id', '>', after)
    .orderBy('jobs.job_id')
    .limit(limit)
    .execute();
  return jobs.map((job) => job.job_id);
}

/** Implements `JobStore.countLeftOut`. */
export async function countLeftOut(db: Database, filter: FailureFilter): Promise<number> {
  const { count } = await failedInputs(db, filter)
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where(({ or, eb }) => or([eb('retried_by', 'is not', null), eb('query_erased', '=', 1)]))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Selects failed inputs, with their jobs, by the index of failed jobs and that of the failed inputs of a job. */
function failedInputs(db: Database, { caller, reasons, since, until, before, operation }: FailureFilter) {
  return db
    .selectFrom('jobs')
    .innerJoin('job_requests', 'job_requests.job_id', 'jobs.job_id')
    .innerJoin('inputs', 'inputs.job_id', 'jobs.job_id')
    .where('jobs.status', '=', 'failed')
    .where('inputs.status', '=', sql.lit('failed'))
    .where('jobs.job_id', '<', before)
    .$if(caller !== undefined, (query) => query.where(withoutIndex(db, 'jobs.caller'), '=', caller ?? null))
    .$if(since !== undefined, (query) => query.where(withoutIndex(db, 'jobs.finished_at'), '>=', since ?? null))
    .$if(until !== undefined, (query) => query.where(withoutIndex(db, 'jobs.finished_at'), '<', until ?? null))
    .$if(operation !== undefined, (query) =>
      query.where(withoutIndex(db, 'job_requests.operation'), '=', operation ?? null),
    )
    .$if(reasons !== undefined, (query) => query.where(reasonOf(db), 'in', reasons ?? []));
}

/** Records the retries of inputs in their rows. */
export async function recordRetries(db: Database, jobs: readonly NewJob[]): Promise<void> {
  for (const job of jobs) if (job.retriedInputs?.isOnce === false) await recordRetry(db, job, job.retriedInputs);
}

/**
 * Records retries that are to be the only ones of their inputs. Returns the jobs whose inputs have a retry already: nothing is
 * recorded of these.
 */
export async function recordOnlyRetries(db: Database, jobs: readonly NewJob[]): Promise<ReadonlySet<NewJob>> {
  const late = new Set<NewJob>();
  for (const job of jobs) {
    const { jobId, retriedFrom = '', retriedInputs } = job;
    if (!retriedInputs?.isOnce) continue;
    const recorded = await recordRetry(db, job, retriedInputs);
    if (recorded === retriedInputs.inputIndexes.length) continue;
    const update = db.updateTable('inputs').set({ retried_by: null });
    await update.where('job_id', '=', retriedFrom).where('retried_by', '=', jobId).execute();
    late.add(job);
  }
  return late;
}

/** Returns the number of inputs that the retry is recorded of. PostgreSQL checks a row again that another transaction changed. */
async function recordRetry(db: Database, { jobId, retriedFrom = '' }: NewJob, inputs: RetriedInputs): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('inputs')
    .set({ retried_by: jobId })
    .where('job_id', '=', retriedFrom)
    .where('input_index', 'in', indexesOf(db, inputs))
    .$if(inputs.isOnce, (update) => update.where('retried_by', 'is', null))
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Returns a job that has one of the inputs of a late retry. It counts as failed where it, or the job of the inputs, was deleted. */
export async function findRetry(db: Database, job: NewJob, inputs: RetriedInputs): Promise<KnownJob> {
  const retry = await db
    .selectFrom('inputs')
    .leftJoin('jobs', 'jobs.job_id', 'inputs.retried_by')
    .select(['inputs.retried_by as jobId', 'jobs.status as status'])
    .where('inputs.job_id', '=', job.retriedFrom ?? '')
    .where('input_index', 'in', indexesOf(db, inputs))
    .where('retried_by', 'is not', null)
    .executeTakeFirst();
  return { jobId: retry?.jobId ?? '', status: retry?.status ?? 'failed', digest: '' };
}

function indexesOf(db: Database, { inputIndexes }: RetriedInputs) {
  const rows = inputIndexes.map((inputIndex) => ({ input_index: inputIndex }));
  return sql<number>`(select input_index from ${givenRows(db, { input_index: 'integer' }, rows)} as given)`;
}
