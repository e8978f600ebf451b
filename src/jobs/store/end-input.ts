import assert from 'node:assert/strict';
import type { ExpressionBuilder } from 'kysely';
import {
  type ByteProgress,
  type Claim,
  cancelledEntry,
  MAX_PROCESS_ENDS,
  MAX_SERVICE_ENDS,
  NO_PROGRESS,
  processEndedEntry,
  type ResultEntry,
} from '../job.ts';
import { isCancelled } from './cancel-job.ts';
import { endJobWhereDone, type JobCount } from './end-job.ts';
import { runPrepared } from './prepared.ts';
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

const END_INPUT = `
  update inputs set status = $1, result = $2, delivered_digest = $3
  where job_id = $4 and input_index = $5 and attempt = $6 and status in ('reserved', 'running')
  returning input_index`;

const COUNT_INPUT = `
  update jobs
  set inputs_done = inputs_done + 1, inputs_failed = inputs_failed + $1,
    bytes_done = bytes_done + $2, bytes_total = bytes_total + $3
  where job_id = $4
  returning job_id, inputs_done, inputs_total, inputs_failed, cancelled_at, has_url_secrets, has_callback`;

/** Records what became of an input, and ends its job with the last one. */
export async function finishInput(
  db: Database,
  claim: Claim,
  entry: ResultEntry,
  progress: ByteProgress,
  digest: string | null = null,
): Promise<InputEnd> {
  const { jobId, inputIndex, attempt } = claim;
  const result = [entry.status, JSON.stringify(entry), digest];
  if ((await runPrepared(db, END_INPUT, [...result, jobId, inputIndex, attempt])).length === 0) return LATE;
  const failed = entry.status === 'succeeded' ? 0 : 1;
  const counts = [failed, progress.bytesDone, progress.bytesTotal];
  const [job] = await runPrepared<JobCount>(db, COUNT_INPUT, [...counts, jobId]);
  assert(job !== undefined, 'an input belongs to a job');
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
  return finishInput(db, claim, processEndedEntry(claim.inputIndex, processEnds, how), NO_PROGRESS);
}

/**
 * Records that the whole service or node ended while an input ran on it: the input is queued again, or fails after
 * `MAX_SERVICE_ENDS` times. It is counted apart from the ends of its own process, of which the input may be the cause.
 */
export async function recordServiceEnd(db: Database, claim: Claim, how: string): Promise<InputEnd> {
  const input = await db.selectFrom('inputs').select('service_ends').where(isCurrent(claim)).executeTakeFirst();
  if (input === undefined) return LATE;
  const serviceEnds = input.service_ends + 1;
  await db.updateTable('inputs').set({ service_ends: serviceEnds }).where(isCurrent(claim)).execute();
  if (serviceEnds < MAX_SERVICE_ENDS) return requeueInput(db, claim);
  return finishInput(db, claim, processEndedEntry(claim.inputIndex, serviceEnds, how), NO_PROGRESS);
}

/** The fence: only the attempt that claimed an input last may write, and only until the input has ended. */
export function isCurrent({ jobId, inputIndex, attempt }: Claim) {
  return ({ and, eb }: ExpressionBuilder<Tables, 'inputs'>) =>
    and([and({ job_id: jobId, input_index: inputIndex, attempt }), eb('status', 'in', ['reserved', 'running'])]);
}
