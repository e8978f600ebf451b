import type { ClaimedInput, JobRequest } from '../store/claim-inputs.ts';
import type { PostgresRunner } from '../store/postgres/postgres-runner.ts';
import type { Database } from '../store/tables.ts';
import type { Deliveries, Delivery } from './deliveries.ts';
import type { LeaseClock } from './lease.ts';

/** A delivery that this node took. */
export interface TakenDelivery {
  readonly delivery: Delivery;
  /** Null where there is nothing left to do. */
  readonly claim: ClaimedInput | null;
  /** Where the job of the claim has no other input. */
  readonly requestOfAlone: JobRequest | null;
  readonly jobEnded: boolean;
  /** The clock's time before the database was asked. */
  readonly askedAtMs: number;
}

/**
 * Takes up to so many deliveries, none of these jobs, and claims their inputs. To be called in a transaction, so that
 * neither is without the other.
 */
export async function takeDeliveries(
  db: Database,
  runner: PostgresRunner,
  deliveries: Deliveries,
  clock: LeaseClock,
  count: number,
  exceptJobs: readonly string[],
): Promise<readonly TakenDelivery[]> {
  const askedAtMs = clock();
  const all = await deliveries.fetch(db, count, exceptJobs);
  const inputs = await runner.within(db, 'takeAllDelivered', [
    all.map(({ jobId, inputIndex }) => ({ jobId, inputIndex })),
  ]);
  const taken = inputs.flatMap((input, index) => {
    const delivery = all[index];
    return delivery === undefined ? [] : [{ delivery, jobEnded: false, requestOfAlone: null, ...input, askedAtMs }];
  });
  const idle = taken.filter(({ claim }) => claim === null);
  if (idle.length > 0)
    await deliveries.end(
      db,
      idle.map(({ delivery }) => delivery),
    );
  return taken;
}
