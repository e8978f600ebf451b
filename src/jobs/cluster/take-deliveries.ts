import type { ClaimedInput } from '../store/claim-inputs.ts';
import type { PostgresRunner } from '../store/postgres/postgres-runner.ts';
import type { Deliveries, Delivery } from './deliveries.ts';
import type { LeaseClock } from './lease.ts';

/** A delivery that this node took. */
export interface TakenDelivery {
  readonly delivery: Delivery;
  /** Null where there is nothing left to do. */
  readonly claim: ClaimedInput | null;
  readonly jobEnded: boolean;
  /** The clock's time before the database was asked. */
  readonly askedAtMs: number;
}

/** Takes deliveries, and claims their inputs in the same transaction: neither is without the other. */
export function takeDeliveries(
  runner: PostgresRunner,
  deliveries: Deliveries,
  clock: LeaseClock,
  count: number,
  exceptJobs: readonly string[],
): Promise<readonly TakenDelivery[]> {
  return runner.transaction(async (db) => {
    const askedAtMs = clock();
    const all: TakenDelivery[] = [];
    for (const delivery of await deliveries.fetch(db, count, exceptJobs)) {
      const { jobId, inputIndex } = delivery;
      const taken = await runner.within(db, 'takeDelivered', [{ jobId, inputIndex }]);
      if (taken.claim === null) await deliveries.end(db, delivery);
      all.push({ delivery, claim: taken.claim, jobEnded: taken.claim === null && taken.jobEnded, askedAtMs });
    }
    return all;
  });
}
