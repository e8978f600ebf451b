import { type Claim, cancelledEntry, NO_PROGRESS } from '../job.ts';
import { isCancelled } from './cancel-job.ts';
import { type ClaimedInput, type JobRequest, requestOfJob, startJob } from './claim-inputs.ts';
import { finishInput, type InputEnd, recordServiceEnd, requeueInput } from './end-input.ts';
import type { Database, InputStatus } from './tables.ts';

/** An input that was delivered to this node to be done: how its job names it. */
export interface DeliveredInput {
  readonly jobId: string;
  readonly inputIndex: number;
}

/** What became of a delivery: the input is claimed, or there is nothing to do, and `jobEnded` tells whether with it its job. */
export type TakenInput =
  | {
      readonly claim: ClaimedInput;
      /** What the input is to be done with, where its job has no other; those of other jobs share one that is read. */
      readonly requestOfAlone: JobRequest | null;
    }
  | { readonly claim: null; readonly jobEnded: boolean };

/**
 * Claims an input that was delivered. Where a node had it that was lost, that is counted: after `MAX_SERVICE_ENDS`
 * times the input fails.
 */
export async function takeDelivered(db: Database, delivered: DeliveredInput): Promise<TakenInput> {
  const queued = await claimQueued(db, delivered);
  if (queued !== null) return queued;
  if (await isCancelled(db, delivered.jobId)) return { claim: null, jobEnded: await endCancelled(db, delivered) };
  const lost = await endOfLost(db, delivered);
  if (lost?.input === 'ended') return { claim: null, jobEnded: lost.jobEnded };
  // Also where nothing was lost: who had it may have queued it again meanwhile, and this is its only delivery.
  const claimed = await claimQueued(db, delivered);
  if (claimed !== null) return claimed;
  const cancelled = await isCancelled(db, delivered.jobId);
  return { claim: null, jobEnded: cancelled && (await endCancelled(db, delivered)) };
}

/**
 * Takes back the end of a node that was counted where a node found its claim lost while its worker lives: the connection
 * was lost, not the process.
 */
export async function forgiveServiceEnd(db: Database, { jobId, inputIndex, attempt }: Claim): Promise<void> {
  await db
    .updateTable('inputs')
    .set(({ eb }) => ({ service_ends: eb('service_ends', '-', 1) }))
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('attempt', '=', attempt + 1)
    .where('service_ends', '>', 0)
    .execute();
}

/** Which of these claims are the last ones on their inputs, and not ended. */
export async function currentAmong(db: Database, claims: readonly Claim[]): Promise<readonly Claim[]> {
  const current: Claim[] = [];
  for (const claim of claims) {
    const held = await heldClaim(db, claim);
    if (held?.attempt === claim.attempt) current.push(claim);
  }
  return current;
}

type Claimed = { readonly claim: ClaimedInput; readonly requestOfAlone: JobRequest | null };

/** Claims an input that is queued, unless its job is cancelled. */
async function claimQueued(db: Database, { jobId, inputIndex }: DeliveredInput): Promise<Claimed | null> {
  const claim = await db
    .updateTable('inputs')
    .set(({ eb }) => ({ status: 'running', attempt: eb('attempt', '+', 1), bytes_done: 0, bytes_total: 0 }))
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('status', '=', 'queued')
    .where(({ exists, selectFrom }) =>
      exists(selectFrom('jobs').select('job_id').where('job_id', '=', jobId).where('cancelled_at', 'is', null)),
    )
    .returning(['attempt', 'transient_failures as transientFailures', 'input as inputJson'])
    .executeTakeFirst();
  if (claim === undefined) return null;
  await startJob(db, jobId);
  const job = await db.selectFrom('jobs').select('inputs_total').where('job_id', '=', jobId).executeTakeFirst();
  const requestOfAlone = job?.inputs_total === 1 ? await requestOfJob(db, jobId) : null;
  return { claim: { jobId, inputIndex, ...claim }, requestOfAlone };
}

async function endOfLost(db: Database, delivered: DeliveredInput): Promise<InputEnd | null> {
  const held = await heldClaim(db, delivered);
  if (held === null) return null;
  return held.status === 'running' ? recordServiceEnd(db, held, 'with its whole node') : requeueInput(db, held);
}

/** A job that was cancelled while this input changed hands. */
async function endCancelled(db: Database, delivered: DeliveredInput): Promise<boolean> {
  const claim = await unendedClaim(db, delivered);
  if (claim === null) return false;
  // It was queued again while it was cancelled: as if it had been claimed, so that it can be ended.
  if (claim.status === 'queued') await holdQueued(db, claim);
  const end = await finishInput(db, claim, cancelledEntry(claim.inputIndex), NO_PROGRESS);
  return end.jobEnded;
}

type LastClaim = Claim & { readonly status: InputStatus };

/** The claim that is on an input, of which nothing is heard any more. */
async function heldClaim(db: Database, delivered: DeliveredInput): Promise<LastClaim | null> {
  const claim = await unendedClaim(db, delivered);
  return claim?.status === 'queued' ? null : claim;
}

/** The last claim on an input that has not ended. */
async function unendedClaim(db: Database, { jobId, inputIndex }: DeliveredInput): Promise<LastClaim | null> {
  const last = await db
    .selectFrom('inputs')
    .select(['attempt', 'status'])
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('status', 'in', ['queued', 'reserved', 'running'])
    .executeTakeFirst();
  return last === undefined ? null : { jobId, inputIndex, ...last };
}

async function holdQueued(db: Database, { jobId, inputIndex }: Claim): Promise<void> {
  await db
    .updateTable('inputs')
    .set({ status: 'reserved' })
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('status', '=', 'queued')
    .execute();
}
