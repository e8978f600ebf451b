import type { Persistence } from '../persistence.ts';
import type { InputEnd } from '../store/end-input.ts';
import type { ExchangedDelivery, ExchangedInputs } from '../store/exchange-inputs.ts';
import type { PostgresRunner } from '../store/postgres/postgres-runner.ts';
import type { Deliveries, Delivery } from './deliveries.ts';
import type { EndedInput, Exchanged } from './input-exchange.ts';
import type { LeaseClock } from './lease.ts';
import type { TakenDelivery } from './taken-delivery.ts';

export interface ExchangeParties {
  readonly persistence: Persistence;
  readonly runner: PostgresRunner;
  readonly deliveries: Deliveries;
  readonly clock: LeaseClock;
}

/**
 * Records how inputs ended and takes up to so many others, none of these jobs. What cannot be recorded for one of several
 * is recorded for each alone. Never rejects.
 */
export async function exchangeDeliveries(
  parties: ExchangeParties,
  ended: readonly EndedInput[],
  count: number,
  exceptJobs: () => Promise<readonly string[]>,
): Promise<Exchanged> {
  const { persistence, clock } = parties;
  const done = await persistence.write(async () => {
    const askedAtMs = clock();
    return { askedAtMs, ...(await exchange(parties, ended, count, await exceptJobs())) };
  });
  if (done === undefined) {
    const alone: (InputEnd | undefined)[] = [];
    for (const one of ended.length > 1 ? ended : []) {
      alone.push((await exchangeDeliveries(parties, [one], 0, exceptJobs)).recorded[0]);
    }
    return { taken: [], recorded: alone, more: false };
  }
  const recorded = ended.map(({ input: { claim } }): InputEnd => {
    const end = done.recorded.find((one) => one.jobId === claim.jobId && one.inputIndex === claim.inputIndex);
    return end === undefined ? { input: 'late', jobEnded: false } : { input: 'ended', jobEnded: end.jobEnded };
  });
  await forgiveLost(parties, ended, recorded);
  const taken: TakenDelivery[] = [];
  for (const one of done.taken) taken.push(...(await takeUp(parties, one, done.askedAtMs)));
  return { taken, recorded, more: done.more };
}

function exchange(
  { runner, deliveries }: ExchangeParties,
  ended: readonly EndedInput[],
  count: number,
  exceptJobs: readonly string[],
): Promise<ExchangedInputs & { readonly more: boolean }> {
  const finished = ended.map(({ input: { claim, delivery }, end }) => ({ claim, deliveryId: delivery.id, ...end }));
  const work = (db: Parameters<Deliveries['exchange']>[0]) => deliveries.exchange(db, finished, count, exceptJobs);
  return ended.some(({ input }) => input.hasUrlSecrets) ? runner.transaction(work) : runner.statement(work);
}

/** Their deliveries lapsed while the workers lived, for the database was out of reach: they are other nodes' now. */
async function forgiveLost(
  { persistence, runner }: ExchangeParties,
  ended: readonly EndedInput[],
  recorded: readonly InputEnd[],
): Promise<void> {
  for (const [index, { input }] of ended.entries()) {
    if (!input.lost || recorded[index]?.input !== 'late') continue;
    await persistence.write(() => runner.run('forgiveServiceEnd', [input.claim]));
  }
}

/** An input that was not queued was lost by another node, is cancelled, or has ended. */
async function takeUp(
  { persistence, runner, deliveries }: ExchangeParties,
  { id, retryCount, data, claim, requestOfAlone, hasUrlSecrets }: ExchangedDelivery,
  askedAtMs: number,
): Promise<readonly TakenDelivery[]> {
  const delivery: Delivery = { id, retryCount, ...data };
  if (claim !== null) return [{ delivery, claim, requestOfAlone, hasUrlSecrets, jobEnded: false, askedAtMs }];
  const taken = await persistence.write(() =>
    runner.transaction(async (db) => {
      // A node that was held up since it took the delivery may have lost it to another one.
      if (!(await deliveries.holds(db, delivery))) return null;
      const { jobId, inputIndex } = delivery;
      const input = await runner.within(db, 'takeDelivered', [{ jobId, inputIndex }]);
      if (input.claim === null) await deliveries.end(db, delivery);
      return input;
    }),
  );
  return taken === undefined || taken === null
    ? []
    : [{ delivery, requestOfAlone: null, hasUrlSecrets: true, jobEnded: false, ...taken, askedAtMs }];
}
