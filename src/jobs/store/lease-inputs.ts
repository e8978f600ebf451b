import { sql } from 'kysely';
import type { JobStatus } from '#contract/job.ts';
import { type InputAttempt, NO_PROGRESS } from '../job.ts';
import { cancelledEntry } from '../result-entries.ts';
import { givenRows, hasRowLocks, jsonObject } from './dialect.ts';
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
import { type JobChange, startOf, updateJobs } from './update-jobs.ts';

/** Implements `JobStore.leaseInputs`. */
export async function leaseInputs(db: Database, jobId: string, counts: LeaseCounts): Promise<readonly LeasedInput[]> {
  const { start, reserve } = counts;
  const leased = [
    ...(start > 0 ? await leaseFirst(db, jobId, 'running', start) : []),
    ...(reserve > 0 ? await leaseFirst(db, jobId, 'reserved', reserve) : []),
  ];
  if (start > 0 && leased.length > 0) await updateJobs(db, [startOf(jobId)]);
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
  const queued = await leaseOneQueued(db, input);
  if (queued !== null) return queued;
  if (await isCancelled(db, input.jobId)) return { lease: null, jobFinished: await finishCancelled(db, input) };
  const lost = await recoverLost(db, input);
  if (lost?.input === 'finished') return { lease: null, jobFinished: lost.jobFinished };
  // Also when nothing was lost: its node may have queued it again meanwhile, and this is its only job message.
  const leased = await leaseOneQueued(db, input);
  if (leased !== null) return leased;
  const cancelled = await isCancelled(db, input.jobId);
  return { lease: null, jobFinished: cancelled && (await finishCancelled(db, input)) };
}

async function leaseOneQueued(db: Database, input: InputId): Promise<NewLease | null> {
  const { leased, starts } = await leaseQueued(db, [input]);
  await updateJobs(db, starts);
  return leased[0] ?? null;
}

/** An input that was queued, and is leased now. */
export type NewLease = Extract<InputLease, { lease: LeasedInput }>;

/** The columns of `JobRequest`. */
const REQUEST_FIELDS = {
  operation: 'operation',
  outputJson: 'output',
  paramsJson: 'params',
  traceParent: 'trace_parent',
} as const satisfies Record<keyof JobRequest, string>;

interface LeasedRow extends LeasedInput {
  readonly jobStatus: JobStatus;
  /** JSON of a `JobRequest`; null unless the job has a single input and retries no other. */
  readonly request: string | null;
}

const INPUT_COLUMNS = { job_id: 'text', input_index: 'integer' } as const;

/**
 * Leases those of the inputs that are queued, and whose jobs are not cancelled. Returns them with the changes of their
 * jobs, which are to be made in the same transaction.
 */
export async function leaseQueued(
  db: Database,
  inputs: readonly InputId[],
): Promise<{ readonly leased: readonly NewLease[]; readonly starts: readonly JobChange[] }> {
  if (inputs.length === 0) return { leased: [], starts: [] };
  const rows = inputs.map(({ jobId, inputIndex }) => ({ job_id: jobId, input_index: inputIndex }));
  // The request is read with the lease, because every statement costs a round trip.
  const { rows: leases } = await sql<LeasedRow>`
    update inputs set status = 'running', attempt = inputs.attempt + 1, bytes_done = 0, bytes_total = 0
    from ${givenRows(db, INPUT_COLUMNS, rows)} as wanted
    where inputs.job_id = wanted.job_id and inputs.input_index = wanted.input_index and inputs.status = 'queued'
      and exists (select 1 from jobs where jobs.job_id = inputs.job_id and jobs.cancelled_at is null)
    returning inputs.job_id as "jobId", inputs.input_index as "inputIndex", inputs.attempt,
      inputs.transient_failures as "transientFailures", inputs.process_ends as "processExits",
      inputs.input as "inputJson",
      (select jobs.status from jobs where jobs.job_id = inputs.job_id) as "jobStatus",
      (select ${jsonObject(db, REQUEST_FIELDS)} from jobs join job_requests on job_requests.job_id = jobs.job_id
        where jobs.job_id = inputs.job_id and inputs_total = 1 and retried_from is null) as request`.execute(db);
  return {
    leased: leases.map(({ jobStatus: _, request, ...lease }) => ({
      lease,
      singleInputRequest: request === null ? null : (JSON.parse(request) as JobRequest),
    })),
    starts: leases.flatMap(({ jobId, jobStatus }) => (jobStatus === 'queued' ? [startOf(jobId)] : [])),
  };
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
