import { type Claim, cancelledEntry, NO_PROGRESS } from '../job.ts';
import { isCancelled } from './cancel-job.ts';
import { type ClaimedInput, startJob } from './claim-inputs.ts';
import { finishInput, type InputEnd, recordProcessEnd, requeueInput } from './end-input.ts';
import type { Database } from './tables.ts';

/** An input that was delivered to this node to be done: how its job names it. */
export interface DeliveredInput {
  readonly jobId: string;
  readonly inputIndex: number;
}

/** What became of a delivery: the input is claimed, or there is nothing to do, and `jobEnded` tells whether with it its job. */
export type TakenInput = { readonly claim: ClaimedInput } | { readonly claim: null; readonly jobEnded: boolean };

/**
 * Claims an input that was delivered. Where a node had it that was lost, that counts as the end of a process: after the
 * third the input fails.
 */
export async function takeDelivered(db: Database, delivered: DeliveredInput): Promise<TakenInput> {
  if (await isCancelled(db, delivered.jobId)) return { claim: null, jobEnded: await endCancelled(db, delivered) };
  const queued = await claimQueued(db, delivered);
  if (queued !== null) return { claim: queued };
  const lost = await endOfLost(db, delivered);
  if (lost?.input !== 'queued') return { claim: null, jobEnded: lost?.jobEnded === true };
  const claim = await claimQueued(db, delivered);
  return claim === null ? { claim, jobEnded: false } : { claim };
}

/**
 * Takes back the process end that was counted where a node found its claim lost while its worker lives: the connection
 * was lost, not the process.
 */
export async function forgiveProcessEnd(db: Database, { jobId, inputIndex, attempt }: Claim): Promise<void> {
  await db
    .updateTable('inputs')
    .set(({ eb }) => ({ process_ends: eb('process_ends', '-', 1) }))
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('attempt', '=', attempt + 1)
    .where('process_ends', '>', 0)
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

async function claimQueued(db: Database, { jobId, inputIndex }: DeliveredInput): Promise<ClaimedInput | null> {
  const claimed = await db
    .updateTable('inputs')
    .set(({ eb }) => ({ status: 'running', attempt: eb('attempt', '+', 1), bytes_done: 0, bytes_total: 0 }))
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('status', '=', 'queued')
    .returning(['attempt', 'transient_failures as transientFailures', 'input as inputJson'])
    .executeTakeFirst();
  if (claimed === undefined) return null;
  await startJob(db, jobId);
  return { jobId, inputIndex, ...claimed };
}

async function endOfLost(db: Database, delivered: DeliveredInput): Promise<InputEnd | null> {
  const held = await heldClaim(db, delivered);
  if (held === null) return null;
  return held.status === 'running' ? recordProcessEnd(db, held, 'with its whole node') : requeueInput(db, held);
}

/** A job that was cancelled while this input changed hands. */
async function endCancelled(db: Database, delivered: DeliveredInput): Promise<boolean> {
  const claim = (await claimQueued(db, delivered)) ?? (await heldClaim(db, delivered));
  if (claim === null) return false;
  const end = await finishInput(db, claim, cancelledEntry(claim.inputIndex), NO_PROGRESS);
  return end.jobEnded;
}

/** The claim that is on an input, of which nothing is heard any more. */
async function heldClaim(
  db: Database,
  { jobId, inputIndex }: DeliveredInput,
): Promise<(Claim & { status: string }) | null> {
  const held = await db
    .selectFrom('inputs')
    .select(['attempt', 'status'])
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('status', 'in', ['reserved', 'running'])
    .executeTakeFirst();
  return held === undefined ? null : { jobId, inputIndex, ...held };
}
