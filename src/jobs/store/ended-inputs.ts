import { sql } from 'kysely';
import type { Database } from './tables.ts';

/**
 * JSON of the result entries of the inputs that a statement chooses, all of which have ended. One that was cancelled while it
 * waited has none written down.
 */
export const ENTRIES_JSON = `'[' || coalesce(string_agg(
  coalesce(result, '{"input_index":' || input_index || ',"status":"cancelled"}'), ',' order by input_index), '') || ']'`;

/** The indexes of a job's inputs that have ended. */
export async function endedInputs(db: Database, jobId: string): Promise<readonly number[]> {
  const inputs = await db
    .selectFrom('inputs')
    .select('input_index')
    .where('job_id', '=', jobId)
    .where('status', 'in', ['succeeded', 'failed', 'cancelled'])
    .orderBy('input_index')
    .execute();
  return inputs.map((input) => input.input_index);
}

/** JSON of the result entries of some inputs that have ended; at most so many as one statement takes. */
export async function entriesOf(db: Database, jobId: string, inputIndexes: readonly number[]): Promise<string> {
  const { entries } = await entriesIn(db, jobId).where('input_index', 'in', inputIndexes).executeTakeFirstOrThrow();
  return entries;
}

/** JSON of all result entries of a job that has ended. */
export async function entriesOfJob(db: Database, jobId: string): Promise<string> {
  return (await entriesIn(db, jobId).executeTakeFirstOrThrow()).entries;
}

function entriesIn(db: Database, jobId: string) {
  return db
    .selectFrom('inputs')
    .select(sql<string>`${sql.raw(ENTRIES_JSON)}`.as('entries'))
    .where('job_id', '=', jobId);
}
