import type { OperationName } from '#operations/operation.ts';
import type { Claim } from '../job.ts';
import { isPostgres } from './dialect.ts';
import { isCurrent } from './end-input.ts';
import type { Database } from './tables.ts';

/** An input that was claimed. The JSON is parsed where the work is done. */
export interface ClaimedInput extends Claim {
  /** How often it failed before for a reason that may pass. */
  readonly transientFailures: number;
  readonly inputJson: string;
}

/** What all inputs of a job share. The JSON is parsed where the work is done. */
export interface JobRequest {
  readonly operation: OperationName;
  readonly outputJson: string;
  readonly paramsJson: string;
  readonly traceParent: string | null;
}

/** How many inputs of a job are claimed at once: so many to be started now, and so many to be started soon. */
export interface ClaimCounts {
  readonly start: number;
  readonly reserve: number;
}

/** Claims the first queued inputs of a job, those to be started first; fewer where fewer are queued. */
export async function claimInputs(db: Database, jobId: string, counts: ClaimCounts): Promise<readonly ClaimedInput[]> {
  const { start, reserve } = counts;
  const claimed = [
    ...(start > 0 ? await claimFirst(db, jobId, 'running', start) : []),
    ...(reserve > 0 ? await claimFirst(db, jobId, 'reserved', reserve) : []),
  ];
  if (start > 0 && claimed.length > 0) await startJob(db, jobId);
  return claimed;
}

/** Records that a reserved input is started. */
export async function startReservedInput(db: Database, claim: Claim): Promise<void> {
  await db.updateTable('inputs').set({ status: 'running' }).where(isCurrent(claim)).execute();
}

/** What the inputs of a job share; null where there is no such job. */
export async function requestOfJob(db: Database, jobId: string): Promise<JobRequest | null> {
  const request = await db
    .selectFrom('job_requests')
    .select(['operation', 'output as outputJson', 'params as paramsJson', 'trace_parent as traceParent'])
    .where('job_id', '=', jobId)
    .executeTakeFirst();
  return request ?? null;
}

async function claimFirst(
  db: Database,
  jobId: string,
  status: 'reserved' | 'running',
  count: number,
): Promise<ClaimedInput[]> {
  const claimed = await db
    // Apart from the update, which might look for the next ones several times.
    .with('next', (store) =>
      store
        .selectFrom('inputs')
        .select('input_index')
        .where('job_id', '=', jobId)
        .where('status', '=', 'queued')
        .orderBy('input_index')
        .limit(count)
        .$if(isPostgres(db), (inputs) => inputs.forUpdate().skipLocked()),
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
      'input as inputJson',
    ])
    .execute();
  // The rows that an update returns have no order.
  return claimed.sort((a, b) => a.inputIndex - b.inputIndex).map((input) => ({ jobId, ...input }));
}

/** A job runs from the start of its first input. */
export async function startJob(db: Database, jobId: string): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ status: 'running', started_at: new Date().toISOString() })
    .where('job_id', '=', jobId)
    .where('status', '=', 'queued')
    .execute();
}
