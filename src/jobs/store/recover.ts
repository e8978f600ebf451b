import { sql } from 'kysely';
import type { Claim } from '../job.ts';
import { type InputEnd, recordServiceEnd, requeueInput } from './end-input.ts';
import type { Database } from './tables.ts';

/** An input that was claimed when the service ended, and what became of it. */
export interface RecoveredInput extends Claim {
  readonly end: InputEnd;
}

/**
 * Takes up what was claimed when the service last ended. An input that ran is queued again, or fails where it ran at
 * `MAX_SERVICE_ENDS` ends of the service; one that was only reserved is queued again. To be called before anything is
 * claimed.
 */
export async function recover(db: Database): Promise<readonly RecoveredInput[]> {
  const claimed = await db
    .selectFrom('inputs')
    .select(['job_id as jobId', 'input_index as inputIndex', 'attempt', 'status'])
    // Written into the statement, so that SQLite sees that the index of claimed inputs will do.
    .where(sql<boolean>`status in ('reserved', 'running')`)
    .execute();
  const recovered: RecoveredInput[] = [];
  for (const { status, ...claim } of claimed) {
    const end =
      status === 'running'
        ? await recordServiceEnd(db, claim, 'when the whole service ended')
        : await requeueInput(db, claim);
    recovered.push({ ...claim, end });
  }
  return recovered;
}
