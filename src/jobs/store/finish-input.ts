import { type ExpressionBuilder, sql, type UpdateObject } from 'kysely';
import { AppError } from '#errors/app-error.ts';
import type { JobScope } from '../caller.ts';
import { type InputAttempt, type InputId, NO_PROGRESS } from '../job.ts';
import { cancelledEntry, failedEntry, type ResultEntry } from '../result-entries.ts';
import { givenRows } from './dialect.ts';
import type { Cancellation, FinishedInput, HandedIn, ReleasedInput } from './job-store.ts';
import { needsText } from './needs.ts';
import type { Database, Tables } from './tables.ts';
import { type JobChange, updateJobs } from './update-jobs.ts';

/**
 * Exits of the whole service or node after which an input that ran at that time fails. Higher, because such an exit is
 * rarely caused by an input; bounded, because an input could bring down its host each time.
 */
export const MAX_SERVICE_EXITS = 10;

const UNCHANGED = { changed: false, finishedJob: null, inputCount: 0 } as const satisfies Partial<Cancellation>;

const LATE: HandedIn = { input: 'late', finishedJob: null };
const QUEUED: HandedIn = { input: 'queued', finishedJob: null };

/** Implements `JobStore.finishInput`. */
export async function finishInput(db: Database, result: FinishedInput): Promise<HandedIn> {
  const recorded = await recordResults(db, [result]);
  const finished = await updateJobs(db, recorded);
  if (recorded.length === 0) return LATE;
  return { input: 'finished', finishedJob: finished.get(result.lease.jobId) ?? null };
}

/** Records the result of an input that produced nothing. */
export function finishWithout(db: Database, lease: InputAttempt, entry: ResultEntry): Promise<HandedIn> {
  return finishInput(db, { lease, entry, progress: NO_PROGRESS, digest: null });
}

export function isSameInput(one: InputId, other: InputId): boolean {
  return one.jobId === other.jobId && one.inputIndex === other.inputIndex;
}

const RESULT_COLUMNS = {
  job_id: 'text',
  input_index: 'integer',
  attempt: 'integer',
  status: 'text',
  result: 'text',
  digest: 'text',
} as const;

/**
 * Records the results of inputs, but for late ones. Returns those recorded with the changes of their jobs, which are to be
 * made in the same transaction.
 */
export async function recordResults(
  db: Database,
  results: readonly FinishedInput[],
): Promise<readonly (InputId & JobChange)[]> {
  if (results.length === 0) return [];
  const rows = results.map(({ lease, entry, digest }) => ({
    job_id: lease.jobId,
    input_index: lease.inputIndex,
    attempt: lease.attempt,
    status: entry.status,
    result: JSON.stringify(entry),
    digest,
  }));
  const { rows: recorded } = await sql<InputId>`
    update inputs set status = given.status, result = given.result, delivered_digest = given.digest
    from ${givenRows(db, RESULT_COLUMNS, rows)} as given
    where inputs.job_id = given.job_id and inputs.input_index = given.input_index and inputs.attempt = given.attempt
      and inputs.status in ('reserved', 'running')
    returning inputs.job_id as "jobId", inputs.input_index as "inputIndex"`.execute(db);
  return results.flatMap(({ lease: { jobId, inputIndex }, entry, progress }) => {
    if (!recorded.some((one) => isSameInput(one, { jobId, inputIndex }))) return [];
    return [{ jobId, inputIndex, ...countsOf(entry), ...progress }];
  });
}

function countsOf({ status, error_details }: ResultEntry) {
  return {
    done: 1,
    failed: status === 'succeeded' ? 0 : 1,
    cancelled: status === 'cancelled' ? 1 : 0,
    firstReason: error_details?.reason ?? null,
  };
}

/** Implements `JobStore.releaseInput`. `pausedAs` is the status of an input until it is to run again. */
export async function releaseInput(
  db: Database,
  released: ReleasedInput,
  pausedAs: 'reserved' | 'queued' = 'reserved',
): Promise<HandedIn> {
  const { lease } = released;
  switch (released.reason) {
    case 'process-exited':
      return changeLeased(db, lease, { status: 'queued', process_ends: sql`process_ends + 1` });
    case 'stopped':
      return requeueInput(db, lease);
    case 'transient-failure':
      return changeLeased(db, lease, { status: pausedAs, transient_failures: sql`transient_failures + 1` });
    // No attempt is counted.
    case 'outage':
      return changeLeased(db, lease, {
        status: released.retryAt === null ? 'queued' : pausedAs,
        needs: needsText(released.needs),
        waiting_for: released.dependency,
        waiting_since: released.since,
        waiting_error: JSON.stringify(released.error),
      });
  }
}

/** Queues an input again. It finishes when its job is cancelled. */
export function requeueInput(db: Database, lease: InputAttempt): Promise<HandedIn> {
  return changeLeased(db, lease, { status: 'queued' });
}

/** Changes a leased input that is to run again. It finishes when its job is cancelled. */
async function changeLeased(
  db: Database,
  lease: InputAttempt,
  changes: UpdateObject<Tables, 'inputs'>,
): Promise<HandedIn> {
  if (await isCancelled(db, lease.jobId)) return finishWithout(db, lease, cancelledEntry(lease.inputIndex));
  const update = db.updateTable('inputs').set(changes).where(isCurrent(lease));
  return (await update.executeTakeFirst()).numUpdatedRows === 0n ? LATE : QUEUED;
}

/**
 * Counts an exit of the whole service or node while the input ran: queues it again, or fails it after `MAX_SERVICE_EXITS`
 * exits. Counted apart from exits of its own process, which the input may have caused. `exitCause` ends the sentence "the last
 * time …".
 */
export async function recordServiceExit(db: Database, lease: InputAttempt, exitCause: string): Promise<HandedIn> {
  const input = await db.selectFrom('inputs').select('service_ends').where(isCurrent(lease)).executeTakeFirst();
  if (input === undefined) return LATE;
  const times = input.service_ends + 1;
  if (times < MAX_SERVICE_EXITS || (await isCancelled(db, lease.jobId)))
    return changeLeased(db, lease, { status: 'queued', service_ends: times });
  const error = new AppError('INPUT_ENDED_PROCESS', { times, how: exitCause });
  return finishWithout(db, lease, failedEntry(lease.inputIndex, error.toData()));
}

/**
 * Takes back a service exit that another node counted although this node's worker is alive: only its connection was
 * lost. Does nothing when a still newer lease exists.
 */
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
export async function cancelJob(db: Database, jobId: string, scope: JobScope = {}): Promise<Cancellation | null> {
  const job = await db
    .selectFrom('jobs')
    .select(['caller', 'finished_at', 'cancelled_at'])
    .where('job_id', '=', jobId)
    .$if(scope.caller !== undefined, (jobs) => jobs.where('caller', '=', scope.caller ?? null))
    .executeTakeFirst();
  if (job === undefined) return null;
  const { caller } = job;
  if (job.finished_at !== null || job.cancelled_at !== null) return { caller, ...UNCHANGED };
  // Inputs first, then their job: every transaction locks in this order, which prevents deadlocks.
  const { numUpdatedRows } = await db
    .updateTable('inputs')
    .set({ status: 'cancelled' })
    .where('job_id', '=', jobId)
    .where('status', 'in', ['queued', 'reserved'])
    .executeTakeFirst();
  const { numUpdatedRows: cancelledJobs } = await db
    .updateTable('jobs')
    .set({ cancelled_at: new Date().toISOString() })
    .where('job_id', '=', jobId)
    .where('finished_at', 'is', null)
    .where('cancelled_at', 'is', null)
    .executeTakeFirst();
  // The job finished, or was cancelled, after the select.
  if (cancelledJobs === 0n) return { caller, ...UNCHANGED };
  const count = Number(numUpdatedRows);
  if (count === 0) return { caller, changed: true, finishedJob: null, inputCount: 0 };
  const finished = await updateJobs(db, [
    { jobId, done: count, failed: count, cancelled: count, firstReason: null, ...NO_PROGRESS },
  ]);
  return { caller, changed: true, finishedJob: finished.get(jobId) ?? null, inputCount: count };
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
