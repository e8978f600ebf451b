import type { RunEnd } from '../input-runs.ts';
import { retryPauseMs } from '../retry.ts';
import type { InputEnd } from '../store/end-input.ts';
import type { PostgresRunner } from '../store/postgres/postgres-runner.ts';
import type { Database } from '../store/tables.ts';
import type { Deliveries } from './deliveries.ts';
import type { HeldInput } from './held-inputs.ts';

/** Records how an input ended, and ends its delivery or has it delivered again. To be called in a transaction. */
export async function recordEnd(
  db: Database,
  runner: PostgresRunner,
  deliveries: Deliveries,
  input: HeldInput,
  end: RunEnd,
): Promise<InputEnd> {
  const { claim, delivery, lost } = input;
  const pauseMs = retryPauseMs(claim, end);
  const recorded = await endInput(runner, db, input, end, pauseMs !== null);
  // The delivery lapsed while the worker lived, for the database was out of reach: it is, or will be, another node's.
  if (lost && recorded.input === 'late') await runner.within(db, 'forgiveProcessEnd', [claim]);
  else if (!lost && recorded.input === 'queued') await deliveries.delay(db, delivery, pauseMs ?? 0);
  else if (!lost) await deliveries.end(db, delivery);
  return recorded;
}

function endInput(
  runner: PostgresRunner,
  db: Database,
  { claim }: HeldInput,
  end: RunEnd,
  again: boolean,
): Promise<InputEnd> {
  if (end.type === 'process-ended') return runner.within(db, 'recordProcessEnd', [claim, end.how]);
  if (end.type === 'stopped') return runner.within(db, 'requeueInput', [claim]);
  if (!again) return runner.within(db, 'finishInput', [claim, end.entry, end.progress, end.digest]);
  return runner.within(db, 'recordTransientFailure', [claim]).then(() => runner.within(db, 'requeueInput', [claim]));
}
