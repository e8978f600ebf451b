import type { OperationName } from '#operations/operation.ts';
import type { Claim } from '../job.ts';
import { isCurrent } from './end-input.ts';
import type { Database } from './tables.ts';

/** An input that was claimed, with all that is needed to do it. The JSON is parsed where the work is done. */
export interface ClaimedInput extends Claim {
  readonly operation: OperationName;
  readonly inputJson: string;
  readonly outputJson: string;
  readonly paramsJson: string;
}

/** Starts the first queued input of a job; null where none is queued. */
export async function startNextInput(db: Database, jobId: string, now: Date): Promise<ClaimedInput | null> {
  const input = await claimNextInput(db, jobId, 'running');
  if (input !== null) await startJob(db, jobId, now);
  return input;
}

/** Reserves the first queued input of a job for this process, to be started soon; null where none is queued. */
export function reserveNextInput(db: Database, jobId: string): Promise<ClaimedInput | null> {
  return claimNextInput(db, jobId, 'reserved');
}

/** Records that a reserved input is started. */
export async function startReservedInput(db: Database, claim: Claim, now: Date): Promise<void> {
  await db.updateTable('inputs').set({ status: 'running' }).where(isCurrent(claim)).execute();
  await startJob(db, claim.jobId, now);
}

async function claimNextInput(
  db: Database,
  jobId: string,
  status: 'reserved' | 'running',
): Promise<ClaimedInput | null> {
  const claimed = await db
    .updateTable('inputs')
    .set(({ eb }) => ({ status, attempt: eb('attempt', '+', 1) }))
    .where('job_id', '=', jobId)
    .where('status', '=', 'queued')
    .where('input_index', '=', ({ selectFrom }) =>
      selectFrom('inputs')
        .select(({ fn }) => fn.min('input_index').as('first'))
        .where('job_id', '=', jobId)
        .where('status', '=', 'queued'),
    )
    .returning(['input_index', 'attempt', 'input'])
    .executeTakeFirst();
  if (claimed === undefined) return null;
  const request = await db
    .selectFrom('job_requests')
    .select(['operation', 'output', 'params'])
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
  return {
    jobId,
    inputIndex: claimed.input_index,
    attempt: claimed.attempt,
    operation: request.operation,
    inputJson: claimed.input,
    outputJson: request.output,
    paramsJson: request.params,
  };
}

/** A job runs from the start of its first input. */
async function startJob(db: Database, jobId: string, now: Date): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ status: 'running', started_at: now.toISOString() })
    .where('job_id', '=', jobId)
    .where('status', '=', 'queued')
    .execute();
}
