import type { ExpressionBuilder } from 'kysely';
import {
  type ByteProgress,
  type Claim,
  cancelledEntry,
  MAX_PROCESS_ENDS,
  NO_PROGRESS,
  processEndedEntry,
  type ResultEntry,
} from '../job.ts';
import { isCancelled } from './cancel-job.ts';
import { endJobWhereDone } from './end-job.ts';
import type { Database, Tables } from './tables.ts';

/** What recording the end of an input brought about. */
export interface InputEnd {
  /** `late`: the claim is an older attempt's, or the input has ended; nothing was written. */
  readonly input: 'ended' | 'queued' | 'late';
  /** True where it was the last input of its job. */
  readonly jobEnded: boolean;
}

const LATE: InputEnd = { input: 'late', jobEnded: false };
const QUEUED: InputEnd = { input: 'queued', jobEnded: false };

/** Records what became of an input, and ends its job with the last one. */
export async function finishInput(
  db: Database,
  claim: Claim,
  entry: ResultEntry,
  progress: ByteProgress,
  digest: string | null = null,
): Promise<InputEnd> {
  const { numUpdatedRows } = await db
    .updateTable('inputs')
    .set({ status: entry.status, result: JSON.stringify(entry), delivered_digest: digest })
    .where(isCurrent(claim))
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return LATE;
  const job = await db
    .updateTable('jobs')
    .set(({ eb }) => ({
      inputs_done: eb('inputs_done', '+', 1),
      inputs_failed: eb('inputs_failed', '+', entry.status === 'succeeded' ? 0 : 1),
      bytes_done: eb('bytes_done', '+', progress.bytesDone),
      bytes_total: eb('bytes_total', '+', progress.bytesTotal),
    }))
    .where('job_id', '=', claim.jobId)
    .returningAll()
    .executeTakeFirstOrThrow();
  return { input: 'ended', jobEnded: await endJobWhereDone(db, job) };
}

/**
 * Queues an input again that was reserved in vain, or stopped for no fault of its own. Where its job is cancelled, the
 * input ends.
 */
export async function requeueInput(db: Database, claim: Claim): Promise<InputEnd> {
  if (await isCancelled(db, claim.jobId)) {
    return finishInput(db, claim, cancelledEntry(claim.inputIndex), NO_PROGRESS);
  }
  const { numUpdatedRows } = await db
    .updateTable('inputs')
    .set({ status: 'queued' })
    .where(isCurrent(claim))
    .executeTakeFirst();
  return numUpdatedRows === 0n ? LATE : QUEUED;
}

/**
 * Records that an input failed for a reason that may pass. It stays claimed, as reserved, until it is queued again.
 */
export async function recordTransientFailure(db: Database, claim: Claim): Promise<void> {
  await db
    .updateTable('inputs')
    .set(({ eb }) => ({ status: 'reserved', transient_failures: eb('transient_failures', '+', 1) }))
    .where(isCurrent(claim))
    .execute();
}

/** Records that the process working on an input ended: the input is queued again, or fails after the third time. */
export async function recordProcessEnd(db: Database, claim: Claim, how: string): Promise<InputEnd> {
  const input = await db.selectFrom('inputs').select('process_ends').where(isCurrent(claim)).executeTakeFirst();
  if (input === undefined) return LATE;
  const processEnds = input.process_ends + 1;
  await db.updateTable('inputs').set({ process_ends: processEnds }).where(isCurrent(claim)).execute();
  if (processEnds < MAX_PROCESS_ENDS) return requeueInput(db, claim);
  return finishInput(db, claim, processEndedEntry(claim.inputIndex, how), NO_PROGRESS);
}

/** The fence: only the attempt that claimed an input last may write, and only until the input has ended. */
export function isCurrent({ jobId, inputIndex, attempt }: Claim) {
  return ({ and, eb }: ExpressionBuilder<Tables, 'inputs'>) =>
    and([and({ job_id: jobId, input_index: inputIndex, attempt }), eb('status', 'in', ['reserved', 'running'])]);
}
