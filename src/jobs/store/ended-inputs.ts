import type { ResultEntry } from '../job.ts';
import { entryOfRow } from './find-job.ts';
import type { Database } from './tables.ts';

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

/** The result entries of some inputs that have ended; at most so many as one statement takes. */
export async function entriesOf(
  db: Database,
  jobId: string,
  inputIndexes: readonly number[],
): Promise<readonly ResultEntry[]> {
  if (inputIndexes.length === 0) return [];
  const inputs = await db
    .selectFrom('inputs')
    .select(['input_index', 'result'])
    .where('job_id', '=', jobId)
    .where('input_index', 'in', inputIndexes)
    .orderBy('input_index')
    .execute();
  return inputs.map(entryOfRow);
}
