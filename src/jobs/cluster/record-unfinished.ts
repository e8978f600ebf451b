import type { RunEnd } from '../dispatching/input-runs.ts';
import { retryPauseMs } from '../retry.ts';
import type { InputEnd } from '../store/end-input.ts';
import type { PostgresRunner } from '../store/postgres/postgres-runner.ts';
import type { Database } from '../store/tables.ts';
import type { Deliveries } from './deliveries.ts';
import type { HeldInput } from './held-inputs.ts';

/**
 * Records that an input was stopped, failed for a reason that may pass, or ended its process: it is delivered again, unless
 * that was its last time. To be called in a transaction.
 */
export async function recordUnfinished(
  db: Database,
  runner: PostgresRunner,
  deliveries: Deliveries,
  input: HeldInput,
  end: RunEnd,
): Promise<InputEnd> {
  const recorded = await requeue(db, runner, input, end);
  // The delivery lapsed while the worker lived, for the database was out of reach: it is, or will be, another node's.
  if (input.lost && recorded.input === 'late') await runner.within(db, 'forgiveServiceEnd', [input.claim]);
  if (input.lost) return recorded;
  if (recorded.input === 'queued') await deliveries.delay(db, input.delivery, retryPauseMs(input.claim, end) ?? 0);
  else await deliveries.end(db, input.delivery);
  return recorded;
}

async function requeue(db: Database, runner: PostgresRunner, { claim }: HeldInput, end: RunEnd): Promise<InputEnd> {
  if (end.type === 'process-ended') return runner.within(db, 'recordProcessEnd', [claim, end.how]);
  if (end.type === 'ended') await runner.within(db, 'recordTransientFailure', [claim]);
  return runner.within(db, 'requeueInput', [claim]);
}
