import type { Database } from './tables.ts';

/** A callback that was taken, to be sent now. */
export interface DueCallback {
  readonly jobId: string;
  /** May hold a secret. */
  readonly url: string;
  /** This one included. */
  readonly attempts: number;
  /** When the job ended. */
  readonly endedAt: string;
}

/** Records where the result of a job is to be sent. */
export async function insertCallback(db: Database, jobId: string, url: string): Promise<void> {
  await db.insertInto('callbacks').values({ job_id: jobId, url, state: 'waiting', attempts: 0 }).execute();
}

/** The job has ended: its callback is to be sent. */
export async function makeCallbackDue(db: Database, jobId: string, endedAt: string): Promise<void> {
  await db
    .updateTable('callbacks')
    .set({ state: 'due', ended_at: endedAt, next_attempt_at: endedAt })
    .where('job_id', '=', jobId)
    .execute();
}

/**
 * Takes callbacks that are due, the longest due first. Each becomes due again after the lease, unless it is ended or
 * delayed before: whoever took it may be gone.
 */
export async function claimCallbacks(db: Database, count: number, leaseMs: number): Promise<readonly DueCallback[]> {
  const now = new Date();
  const leasedUntil = new Date(now.getTime() + leaseMs).toISOString();
  const due = await db
    .selectFrom('callbacks')
    .selectAll()
    .where('next_attempt_at', '<=', now.toISOString())
    .orderBy('next_attempt_at')
    .limit(count)
    .execute();
  const taken: DueCallback[] = [];
  for (const { job_id: jobId, url, attempts, ended_at, next_attempt_at } of due) {
    const { numUpdatedRows } = await db
      .updateTable('callbacks')
      .set({ attempts: attempts + 1, next_attempt_at: leasedUntil })
      .where('job_id', '=', jobId)
      // Another node may have taken it since it was read.
      .where('next_attempt_at', '=', next_attempt_at)
      .executeTakeFirst();
    if (numUpdatedRows > 0n) taken.push({ jobId, url, attempts: attempts + 1, endedAt: ended_at ?? '' });
  }
  return taken;
}

/** The callback is to be tried again: it was sent and failed, or it was not sent, which is no attempt. */
export async function delayCallback(db: Database, jobId: string, until: Date, was: 'sent' | 'unsent'): Promise<void> {
  await db
    .updateTable('callbacks')
    .set(({ eb }) => ({
      next_attempt_at: until.toISOString(),
      ...(was === 'unsent' && { attempts: eb('attempts', '-', 1) }),
    }))
    .where('job_id', '=', jobId)
    .where('state', '=', 'due')
    .execute();
}

/** The callback is done with. What remains of its address is who it was sent to. */
export async function endCallback(db: Database, jobId: string, state: 'delivered' | 'given_up'): Promise<void> {
  const callback = await db.selectFrom('callbacks').select('url').where('job_id', '=', jobId).executeTakeFirst();
  if (callback === undefined) return;
  await db
    .updateTable('callbacks')
    .set({ state, url: new URL(callback.url).origin, next_attempt_at: null })
    .where('job_id', '=', jobId)
    .execute();
}
