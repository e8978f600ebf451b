import type { RunEnd } from '../input-runs.ts';
import { retryPauseMs } from '../retry.ts';
import type { InputEnd } from '../store/end-input.ts';
import type { PostgresRunner } from '../store/postgres/postgres-runner.ts';
import type { Database } from '../store/tables.ts';
import type { Deliveries } from './deliveries.ts';
import type { HeldInput } from './held-inputs.ts';
import type { EndedInput } from './input-exchange.ts';

/** Records the results of inputs, and ends their deliveries. To be called in a transaction. */
export async function recordResults(
  db: Database,
  runner: PostgresRunner,
  deliveries: Deliveries,
  ended: readonly EndedInput[],
): Promise<readonly InputEnd[]> {
  const results = ended.map(({ input: { claim }, end }) => ({ claim, ...end }));
  // The deliveries first, for the results hold up all others of the same jobs, on every node, until they are committed.
  const held = ended.flatMap(({ input }) => (input.lost ? [] : [input.delivery]));
  if (held.length > 0) await deliveries.end(db, held);
  const recorded = await runner.within(db, 'finishInputs', [results]);
  for (const [index, { input }] of ended.entries()) await forgiveWhereLost(db, runner, input, recorded[index]);
  return recorded;
}

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
  await forgiveWhereLost(db, runner, input, recorded);
  if (input.lost) return recorded;
  if (recorded.input === 'queued') await deliveries.delay(db, input.delivery, retryPauseMs(input.claim, end) ?? 0);
  else await deliveries.end(db, [input.delivery]);
  return recorded;
}

/** The delivery lapsed while the worker lived, for the database was out of reach: it is, or will be, another node's. */
async function forgiveWhereLost(
  db: Database,
  runner: PostgresRunner,
  { claim, lost }: HeldInput,
  recorded: InputEnd | undefined,
): Promise<void> {
  if (lost && recorded?.input === 'late') await runner.within(db, 'forgiveProcessEnd', [claim]);
}

async function requeue(db: Database, runner: PostgresRunner, { claim }: HeldInput, end: RunEnd): Promise<InputEnd> {
  if (end.type === 'process-ended') return runner.within(db, 'recordProcessEnd', [claim, end.how]);
  if (end.type === 'ended') await runner.within(db, 'recordTransientFailure', [claim]);
  return runner.within(db, 'requeueInput', [claim]);
}
