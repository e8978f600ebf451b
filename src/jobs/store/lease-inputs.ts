import { sql } from 'kysely';
import { type InputAttempt, NO_PROGRESS } from '../job.ts';
import { cancelledEntry } from '../result-entries.ts';
import { hasRowLocks } from './dialect.ts';
import { finishInput, isCancelled, isCurrent, recordServiceExit, requeueInput } from './finish-input.ts';
import type {
  InputEnd,
  InputId,
  InputLease,
  JobRequest,
  LeaseCounts,
  LeasedInput,
  RecoveredInput,
} from './job-store.ts';
import type { Database, InputStatus } from './tables.ts';

/** Implements `JobStore.leaseInputs`. */
export async function leaseInputs(db: Database, jobId: string, counts: LeaseCounts): Promise<readonly LeasedInput[]> {
  const { start, reserve } = counts;
  const leased = [
    ...(start > 0 ? await leaseFirst(db, jobId, 'running', start) : []),
    ...(reserve > 0 ? await leaseFirst(db, jobId, 'reserved', reserve) : []),
  ];
  if (start > 0 && leased.length > 0) await startJob(db, jobId);
  return leased;
}

async function leaseFirst(
  db: Database,
  jobId: string,
  status: 'reserved' | 'running',
  count: number,
): Promise<LeasedInput[]> {
  const leased = await db
    // A CTE, because the update might evaluate a subquery several times.
    .with('next', (store) =>
      store
        .selectFrom('inputs')
        .select('input_index')
        .where('job_id', '=', jobId)
        .where('status', '=', 'queued')
        .orderBy('input_index')
        .limit(count)
        .$if(hasRowLocks(db), (inputs) => inputs.forUpdate().skipLocked()),
    )
    .updateTable('inputs')
    .set(({ eb }) => ({ status, attempt: eb('attempt', '+', 1) }))
    .where('job_id', '=', jobId)
    .where('status', '=', 'queued')
    .where('input_index', 'in', ({ selectFrom }) => selectFrom('next').select('input_index'))
    .returning([
      'input_index as inputIndex',
      'attempt',
      'transient_failures as transientFailures',
      'process_ends as processExits',
      'input as inputJson',
    ])
    .execute();
  // An update returns its rows in no particular order.
  return leased.sort((a, b) => a.inputIndex - b.inputIndex).map((input) => ({ jobId, ...input }));
}

/** Implements `JobStore.startReservedInput`. */
export async function startReservedInput(db: Database, lease: InputAttempt): Promise<void> {
  await db.updateTable('inputs').set({ status: 'running' }).where(isCurrent(lease)).execute();
}

/** Implements `JobStore.requestOfJob`. */
export async function requestOfJob(db: Database, jobId: string): Promise<JobRequest | null> {
  const request = await db
    .selectFrom('job_requests')
    .select(['operation', 'output as outputJson', 'params as paramsJson', 'trace_parent as traceParent'])
    .where('job_id', '=', jobId)
    .executeTakeFirst();
  return request ?? null;
}

/** Implements `JobStore.recoverLeases`. */
export async function recoverLeases(db: Database): Promise<readonly RecoveredInput[]> {
  const leases = await db
    .selectFrom('inputs')
    .select(['job_id as jobId', 'input_index as inputIndex', 'attempt', 'status'])
    // Literals, so that the planner can use the partial index of leased inputs.
    .where(sql<boolean>`status in ('reserved', 'running')`)
    .execute();
  const recovered: RecoveredInput[] = [];
  for (const { status, ...lease } of leases) {
    const end =
      status === 'running'
        ? await recordServiceExit(db, lease, 'when the whole service ended')
        : await requeueInput(db, lease);
    recovered.push({ ...lease, end });
  }
  return recovered;
}

/** Implements `JobStore.leaseInput`. */
export async function leaseInput(db: Database, input: InputId): Promise<InputLease> {
  const queued = await leaseQueued(db, input);
  if (queued !== null) return queued;
  if (await isCancelled(db, input.jobId)) return { lease: null, jobFinished: await finishCancelled(db, input) };
  const lost = await recoverLost(db, input);
  if (lost?.input === 'finished') return { lease: null, jobFinished: lost.jobFinished };
  // Also when nothing was lost: its node may have queued it again meanwhile, and this is its only job message.
  const leased = await leaseQueued(db, input);
  if (leased !== null) return leased;
  const cancelled = await isCancelled(db, input.jobId);
  return { lease: null, jobFinished: cancelled && (await finishCancelled(db, input)) };
}

/** Leases an input that is queued, unless its job is cancelled. */
async function leaseQueued(
  db: Database,
  { jobId, inputIndex }: InputId,
): Promise<Extract<InputLease, { lease: LeasedInput }> | null> {
  const lease = await db
    .updateTable('inputs')
    .set(({ eb }) => ({ status: 'running', attempt: eb('attempt', '+', 1), bytes_done: 0, bytes_total: 0 }))
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('status', '=', 'queued')
    .where(({ exists, selectFrom }) =>
      exists(selectFrom('jobs').select('job_id').where('job_id', '=', jobId).where('cancelled_at', 'is', null)),
    )
    .returning([
      'attempt',
      'transient_failures as transientFailures',
      'process_ends as processExits',
      'input as inputJson',
    ])
    .executeTakeFirst();
  if (lease === undefined) return null;
  await startJob(db, jobId);
  const job = await db
    .selectFrom('jobs')
    .select(['inputs_total', 'retried_from'])
    .where('job_id', '=', jobId)
    .executeTakeFirst();
  const isAlone = job?.inputs_total === 1 && job.retried_from === null;
  const singleInputRequest = isAlone ? await requestOfJob(db, jobId) : null;
  return { lease: { jobId, inputIndex, ...lease }, singleInputRequest };
}

/** Recovers an input that was leased by a node that was lost; null when there is no such lease. */
async function recoverLost(db: Database, input: InputId): Promise<InputEnd | null> {
  const lease = await unfinishedLease(db, input);
  if (lease === null || lease.status === 'queued') return null;
  return lease.status === 'running' ? recordServiceExit(db, lease, 'with its whole node') : requeueInput(db, lease);
}

/** Finishes an input whose job was cancelled while it changed nodes; returns true when that finished the job. */
async function finishCancelled(db: Database, input: InputId): Promise<boolean> {
  const lease = await unfinishedLease(db, input);
  if (lease === null) return false;
  // Queued again during the cancellation. Only a leased input can finish.
  if (lease.status === 'queued') await reserveQueued(db, lease);
  const end = await finishInput(db, lease, cancelledEntry(lease.inputIndex), NO_PROGRESS);
  return end.jobFinished;
}

/** Returns the newest lease of an input that is not finished. */
async function unfinishedLease(
  db: Database,
  { jobId, inputIndex }: InputId,
): Promise<(InputAttempt & { readonly status: InputStatus }) | null> {
  const last = await db
    .selectFrom('inputs')
    .select(['attempt', 'status'])
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('status', 'in', ['queued', 'reserved', 'running'])
    .executeTakeFirst();
  return last === undefined ? null : { jobId, inputIndex, ...last };
}

async function reserveQueued(db: Database, { jobId, inputIndex }: InputId): Promise<void> {
  await db
    .updateTable('inputs')
    .set({ status: 'reserved' })
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('status', '=', 'queued')
    .execute();
}

/** Records that a job runs, at the start of its first input. */
async function startJob(db: Database, jobId: string): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ status: 'running', started_at: new Date().toISOString() })
    .where('job_id', '=', jobId)
    .where('status', '=', 'queued')
    .execute();
}
