import { foldersAbove } from '#bytes/path-overlap.ts';
import type { ApiInputRef } from '#contract/request.ts';
import type { InputId } from '../job.ts';
import { outputPathsIn, type ResultEntry } from '../result-entries.ts';
import { lockForReservation } from './dialect.ts';
import type { JobPaths } from './job-store.ts';
import type { Database } from './tables.ts';

/** Implements `JobStore.reserveOutputPath`. */
export async function reserveOutputPath(db: Database, { jobId, inputIndex }: InputId, path: string): Promise<boolean> {
  await lockForReservation(db, jobId);
  const conflict = await db
    .selectFrom('destinations')
    .select('input_index')
    .where('job_id', '=', jobId)
    .where('input_index', '!=', inputIndex)
    .where(({ and, eb, or }) =>
      or([
        eb('place', 'in', [path, ...foldersAbove(path)]),
        // "0" is the character after "/", so this range is everything inside the folder.
        and([eb('place', '>=', `${path}/`), eb('place', '<', `${path}0`)]),
      ]),
    )
    .limit(1)
    .executeTakeFirst();
  if (conflict !== undefined) return false;
  await db
    .insertInto('destinations')
    .values({ job_id: jobId, place: path, input_index: inputIndex })
    .onConflict((row) => row.doNothing())
    .execute();
  return true;
}

/** Implements `JobStore.releaseOutputPaths`. */
export async function releaseOutputPaths(db: Database, { jobId, inputIndex }: InputId): Promise<void> {
  await db.deleteFrom('destinations').where('job_id', '=', jobId).where('input_index', '=', inputIndex).execute();
}

/** Bound on the jobs that a job retries by way of others. */
const MAX_RETRIED_JOBS = 100;

/** Implements `JobStore.pathsOfJob`. */
export async function pathsOfJob(db: Database, jobId: string): Promise<JobPaths> {
  const { retriedFrom, ...paths } = await pathsOfOneJob(db, jobId);
  const retried: Omit<JobPaths, 'retried'>[] = [];
  for (let next = retriedFrom; next !== null && retried.length < MAX_RETRIED_JOBS; ) {
    const { retriedFrom: before, ...earlier } = await pathsOfOneJob(db, next);
    retried.push(earlier);
    next = before;
  }
  return { ...paths, retried };
}

async function pathsOfOneJob(
  db: Database,
  jobId: string,
): Promise<Omit<JobPaths, 'retried'> & { retriedFrom: string | null }> {
  const request = await db
    .selectFrom('job_requests')
    .innerJoin('jobs', 'jobs.job_id', 'job_requests.job_id')
    .select(['params', 'retried_from'])
    .where('jobs.job_id', '=', jobId)
    .executeTakeFirst();
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
    outputs: results.flatMap((entry) =>
      outputPathsIn(entry).map((outputPath) => ({ inputIndex: entry.input_index, outputPath })),
    ),
    retriedFrom: request?.retried_from ?? null,
  };
}
