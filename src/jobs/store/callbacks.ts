import { databaseTimeMs } from './dialect.ts';
import { type DueCallback, MAX_CALLBACK_PAUSE_MS } from './job-store.ts';
import type { Database } from './tables.ts';

/** The time by which a callback may be due later than after the longest pause: a clock may be set back a little. */
const CLOCK_DIFFERENCE_MS = 60_000;

/** Records the callback of a job. It is due when the job finishes. */
export async function insertCallback(db: Database, jobId: string, url: string): Promise<void> {
  await db.insertInto('callbacks').values({ job_id: jobId, url, state: 'waiting', attempts: 0 }).execute();
}

/** Makes the callback of a finished job due. */
export async function makeCallbackDue(db: Database, jobId: string, finishedAt: string): Promise<void> {
  const dueAt = new Date(await databaseTimeMs(db)).toISOString();
  await db
    .updateTable('callbacks')
    .set({ state: 'due', ended_at: finishedAt, next_attempt_at: dueAt })
    .where('job_id', '=', jobId)
    .execute();
}

/** Implements `JobStore.leaseCallbacks`. */
export async function leaseCallbacks(db: Database, count: number, leaseMs: number): Promise<readonly DueCallback[]> {
  const nowMs = await databaseTimeMs(db);
  const leasedUntil = new Date(nowMs + leaseMs).toISOString();
  // Nothing is postponed for so long: the clock was set back since, and the callback would wait until it catches up.
  const tooLate = new Date(nowMs + Math.max(MAX_CALLBACK_PAUSE_MS, leaseMs) + CLOCK_DIFFERENCE_MS).toISOString();
  const due = await db
    .selectFrom('callbacks')
    .selectAll()
    .where(({ eb, or }) =>
      or([eb('next_attempt_at', '<=', new Date(nowMs).toISOString()), eb('next_attempt_at', '>', tooLate)]),
    )
    .orderBy('next_attempt_at')
    .limit(count)
    .execute();
  const leased: DueCallback[] = [];
  for (const { job_id: jobId, url, attempts, ended_at, next_attempt_at } of due) {
    const { numUpdatedRows } = await db
      .updateTable('callbacks')
      .set({ attempts: attempts + 1, next_attempt_at: leasedUntil })
      .where('job_id', '=', jobId)
      // Another node may have leased it since the select.
      .where('next_attempt_at', '=', next_attempt_at)
      .executeTakeFirst();
    if (numUpdatedRows > 0n) leased.push({ jobId, url, attempts: attempts + 1, finishedAt: ended_at ?? '' });
  }
  return leased;
}

/** Implements `JobStore.postponeCallback`. */
export async function postponeCallback(
  db: Database,
  jobId: string,
  pauseMs: number,
  was: 'sent' | 'unsent',
): Promise<void> {
  const nextAttemptAt = new Date((await databaseTimeMs(db)) + pauseMs).toISOString();
  await db
    .updateTable('callbacks')
    .set(({ eb }) => ({
      next_attempt_at: nextAttemptAt,
      ...(was === 'unsent' && { attempts: eb('attempts', '-', 1) }),
    }))
    .where('job_id', '=', jobId)
    .where('state', '=', 'due')
    .execute();
}

/** Implements `JobStore.closeCallback`. */
export async function closeCallback(db: Database, jobId: string, state: 'delivered' | 'given_up'): Promise<void> {
  const callback = await db.selectFrom('callbacks').select('url').where('job_id', '=', jobId).executeTakeFirst();
  if (callback === undefined) return;
  await db
    .updateTable('callbacks')
    .set({ state, url: new URL(callback.url).origin, next_attempt_at: null })
    .where('job_id', '=', jobId)
    .execute();
}
