import { type InputEnd, recordProcessEnd } from './end-input.ts';
import type { Claim } from '../job.ts';
import type { Database } from './tables.ts';

/** An input that ran when the service ended, and what became of it. */
export interface RecoveredInput extends Claim {
  readonly end: InputEnd;
}

/**
 * Takes up what ran when the service last ended: each such input is queued again, with one more process end to its
 * name, or fails after the third. To be called before anything is claimed.
 */
export async function recover(db: Database, now: Date): Promise<readonly RecoveredInput[]> {
  const running = await db
    .selectFrom('inputs')
    .select(['job_id as jobId', 'input_index as inputIndex', 'attempt'])
    .where('status', '=', 'running')
    .execute();
  const recovered: RecoveredInput[] = [];
  for (const claim of running) {
    recovered.push({ ...claim, end: await recordProcessEnd(db, claim, 'when the whole service ended', now) });
  }
  return recovered;
}
