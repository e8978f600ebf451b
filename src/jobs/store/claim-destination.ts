import { sql } from 'kysely';
import type { Claim } from '../job.ts';
import { isPostgres } from './dialect.ts';
import type { Database } from './tables.ts';

/**
 * Reserves a place for an input of a job that several nodes work on: false where another input of the job has it, or has
 * one that holds it or lies inside it. An input may claim the same place again. `place` has its links resolved.
 */
export async function claimDestination(db: Database, { jobId, inputIndex }: Claim, place: string): Promise<boolean> {
  await lockJob(db, jobId);
  const taken = await db
    .selectFrom('destinations')
    .select('input_index')
    .where('job_id', '=', jobId)
    .where('input_index', '!=', inputIndex)
    .where(({ and, eb, or }) =>
      or([
        eb('place', 'in', [place, ...foldersAbove(place)]),
        // "0" is the character after "/", so that this is everything inside the place.
        and([eb('place', '>=', `${place}/`), eb('place', '<', `${place}0`)]),
      ]),
    )
    .limit(1)
    .executeTakeFirst();
  if (taken !== undefined) return false;
  await db
    .insertInto('destinations')
    .values({ job_id: jobId, place, input_index: inputIndex })
    .onConflict((row) => row.doNothing())
    .execute();
  return true;
}

/** Frees what an input had claimed that delivered nothing. */
export async function releaseDestinations(db: Database, { jobId, inputIndex }: Claim): Promise<void> {
  await db.deleteFrom('destinations').where('job_id', '=', jobId).where('input_index', '=', inputIndex).execute();
}

/**
 * Claims of one job are made one after another; SQLite makes all of them so. A claim need not outlive the database: what
 * ran then is done again, so its commit does not wait for the disk.
 */
async function lockJob(db: Database, jobId: string): Promise<void> {
  if (!isPostgres(db)) return;
  await sql`select set_config('synchronous_commit', 'off', true) from job_requests where job_id = ${jobId} for update`.execute(
    db,
  );
}

function foldersAbove(place: string): string[] {
  const folders: string[] = [];
  for (let end = place.lastIndexOf('/'); end > 0; end = place.lastIndexOf('/', end - 1)) {
    folders.push(place.slice(0, end));
  }
  return folders;
}
