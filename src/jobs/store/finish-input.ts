import assert from 'node:assert/strict';
import { type ExpressionBuilder, sql } from 'kysely';
import type { JobScope } from '../caller.ts';
import { type ByteProgress, type InputAttempt, MAX_PROCESS_EXITS, NO_PROGRESS } from '../job.ts';
import { cancelledEntry, processExitEntry, type ResultEntry } from '../result-entries.ts';
import { makeCallbackDue } from './callbacks.ts';
import type { Cancellation, InputEnd } from './job-store.ts';
import type { Database, JobRow, Tables } from './tables.ts';
import { eraseUrlSecrets } from './url-secrets.ts';

/**
 * Exits of the whole service or node after which an input that ran at that time fails. Higher, because such an exit is
 * rarely caused by an input; bounded, because an input could bring down its host each time.
 */
export const MAX_SERVICE_EXITS = 10;

const LATE: InputEnd = { input: 'late', jobFinished: false };
const UNCHANGED: Cancellation = { changed: false, jobFinished: false };
const QUEUED: InputEnd = { input: 'queued', jobFinished: false };

/** Implements `JobStore.finishInput`. The statements are templates: for SQLite, building them took as long as running them. */
export async function finishInput(
  db: Database,
  { jobId, inputIndex, attempt }: InputAttempt,
  entry: ResultEntry,
  { bytesDone, bytesTotal }: ByteProgress,
  digest: string | null = null,
): Promise<InputEnd> {
  const finished = await sql`
    update inputs set status = ${entry.status}, result = ${JSON.stringify(entry)}, delivered_digest = ${digest}
    where job_id = ${jobId} and input_index = ${inputIndex} and attempt = ${attempt}
      and status in ('reserved', 'running')
    returning input_index`.execute(db);
  if (finished.rows.length === 0) return LATE;
  const failed = entry.status === 'succeeded' ? 0 : 1;
  const counted = await sql<JobCount>`
    update jobs
    set inputs_done = inputs_done + 1, inputs_failed = inputs_failed + ${failed},
      bytes_done = bytes_done + ${bytesDone}, bytes_total = bytes_total + ${bytesTotal}
    where job_id = ${jobId}
    returning job_id, inputs_done, inputs_total, inputs_failed, cancelled_at, has_url_secrets, has_callback`.execute(
    db,
  );
  const [job] = counted.rows;
  assert(job !== undefined, 'an input belongs to a job');
  return { input: 'finished', jobFinished: await finishJobWhenDone(db, job) };
}

/** Implements `JobStore.requeueInput`. */
export async function requeueInput(db: Database, lease: InputAttempt): Promise<InputEnd> {
  if (await isCancelled(db, lease.jobId)) {
    return finishInput(db, lease, cancelledEntry(lease.inputIndex), NO_PROGRESS);
  }
  const { numUpdatedRows } = await db
    .updateTable('inputs')
    .set({ status: 'queued' })
    .where(isCurrent(lease))
    .executeTakeFirst();
  return numUpdatedRows === 0n ? LATE : QUEUED;
}

/** Implements `JobStore.recordTransientFailure`. */
export async function recordTransientFailure(db: Database, lease: InputAttempt): Promise<void> {
  await db
    .updateTable('inputs')
    .set(({ eb }) => ({ status: 'reserved', transient_failures: eb('transient_failures', '+', 1) }))
    .where(isCurrent(lease))
    .execute();
}

/** Implements `JobStore.recordProcessExit`. */
export function recordProcessExit(db: Database, lease: InputAttempt, exitCause: string): Promise<InputEnd> {
  return recordExit(db, lease, exitCause, 'process_ends', MAX_PROCESS_EXITS);
}

/**
 * Counts an exit of the whole service or node while the input ran: queues it again, or fails it after `MAX_SERVICE_EXITS`
 * exits. Counted apart from exits of its own process, which the input may have caused.
 */
export function recordServiceExit(db: Database, lease: InputAttempt, exitCause: string): Promise<InputEnd> {
  return recordExit(db, lease, exitCause, 'service_ends', MAX_SERVICE_EXITS);
}

async function recordExit(
  db: Database,
  lease: InputAttempt,
  exitCause: string,
  column: 'process_ends' | 'service_ends',
  max: number,
): Promise<InputEnd> {
  const input = await db.selectFrom('inputs').select(`${column} as count`).where(isCurrent(lease)).executeTakeFirst();
  if (input === undefined) return LATE;
  const count = input.count + 1;
  await db
    .updateTable('inputs')
    .set({ [column]: count })
    .where(isCurrent(lease))
    .execute();
  if (count < max) return requeueInput(db, lease);
  return finishInput(db, lease, processExitEntry(lease.inputIndex, count, exitCause), NO_PROGRESS);
}

/** Implements `JobStore.undoServiceExit`. */
export async function undoServiceExit(db: Database, { jobId, inputIndex, attempt }: InputAttempt): Promise<void> {
  await db
    .updateTable('inputs')
    .set(({ eb }) => ({ service_ends: eb('service_ends', '-', 1) }))
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('attempt', '=', attempt + 1)
    .where('service_ends', '>', 0)
    .execute();
}

/** Makes the fencing condition: only the newest lease may write, and only until the input is finished. */
export function isCurrent({ jobId, inputIndex, attempt }: InputAttempt) {
  return ({ and, eb }: ExpressionBuilder<Tables, 'inputs'>) =>
    and([and({ job_id: jobId, input_index: inputIndex, attempt }), eb('status', 'in', ['reserved', 'running'])]);
}

/** Implements `JobStore.cancelJob`. */
export async function cancelJob(db: Database, jobId: string, { caller }: JobScope = {}): Promise<Cancellation | null> {
  const job = await db
    .selectFrom('jobs')
    .select(['finished_at', 'cancelled_at'])
    .where('job_id', '=', jobId)
    .$if(caller !== undefined, (jobs) => jobs.where('caller', '=', caller ?? null))
    .executeTakeFirst();
  if (job === undefined) return null;
  if (job.finished_at !== null || job.cancelled_at !== null) return UNCHANGED;
  // Inputs first, then their job: every transaction locks in this order, which prevents deadlocks.
  const { numUpdatedRows } = await db
    .updateTable('inputs')
    .set({ status: 'cancelled' })
    .where('job_id', '=', jobId)
    .where('status', 'in', ['queued', 'reserved'])
    .executeTakeFirst();
  const count = Number(numUpdatedRows);
  const counted = await db
    .updateTable('jobs')
    .set(({ eb }) => ({
      cancelled_at: new Date().toISOString(),
      inputs_done: eb('inputs_done', '+', count),
      inputs_failed: eb('inputs_failed', '+', count),
    }))
    .where('job_id', '=', jobId)
    .where('finished_at', 'is', null)
    .where('cancelled_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
  // The job finished, or was cancelled, after the select.
  if (counted === undefined) return UNCHANGED;
  return { changed: true, jobFinished: await finishJobWhenDone(db, counted) };
}

/** Implements `JobStore.cancelledAmong`. */
export async function cancelledAmong(db: Database, jobIds: readonly string[]): Promise<readonly string[]> {
  if (jobIds.length === 0) return [];
  const cancelled = await db
    .selectFrom('jobs')
    .select('job_id')
    .where('job_id', 'in', jobIds)
    .where('cancelled_at', 'is not', null)
    .execute();
  return cancelled.map((job) => job.job_id);
}

/** Returns true when the job is cancelled. */
export async function isCancelled(db: Database, jobId: string): Promise<boolean> {
  return (await cancelledAmong(db, [jobId])).length > 0;
}

/** The columns that decide whether a job is finished, and with which effects. */
type JobCount = Pick<
  JobRow,
  'job_id' | 'inputs_done' | 'inputs_total' | 'inputs_failed' | 'cancelled_at' | 'has_url_secrets' | 'has_callback'
>;

/** Finishes a job whose inputs are all finished, in the transaction that counted the last one; else returns false. */
async function finishJobWhenDone(db: Database, job: JobCount): Promise<boolean> {
  if (job.inputs_done < job.inputs_total) return false;
  const succeeded = job.inputs_failed === 0 && job.cancelled_at === null;
  const finishedAt = new Date().toISOString();
  await db
    .updateTable('jobs')
    .set({ status: succeeded ? 'succeeded' : 'failed', finished_at: finishedAt })
    .where('job_id', '=', job.job_id)
    .execute();
  if (job.has_url_secrets === 1) await eraseUrlSecrets(db, job.job_id);
  if (job.has_callback === 1) await makeCallbackDue(db, job.job_id, finishedAt);
  return true;
}
