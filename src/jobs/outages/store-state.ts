import { ThrottledQuery } from '#concurrency/throttled-query.ts';
import type { DependencyKind } from '#errors/entry.ts';
import type { StoreState } from '#telemetry/metrics-state.ts';
import { dependencyOf } from '../dependencies.ts';
import type { JobStore, QueueState } from '../store/job-store.ts';
import type { Outage } from './outages.ts';

type WaitingCounts = Pick<JobStore, 'countNeeding' | 'countWaiting'>;

/** Reads what metrics say of the store, by throttled queries. */
export class StoreStateReader {
  readonly #queue: ThrottledQuery<QueueState>;
  readonly #waiting: ThrottledQuery<StoreState['inputsWaitingFor']>;

  constructor(store: Pick<JobStore, 'queueState'> & WaitingCounts, outages: () => readonly Outage[]) {
    this.#queue = new ThrottledQuery(() => store.queueState());
    this.#waiting = new ThrottledQuery(() => countWaiting(outages(), store));
  }

  /** Returns the state, which may be a while old. `works` tells whether the store can be written. Rejects when it cannot be read. */
  async read(works: Promise<boolean>): Promise<StoreState> {
    const [isWritable, state, waiting] = await Promise.all([works, this.#queue.value(), this.#waiting.value()]);
    const { queued, reserved, running, oldestQueuedAt, callbacks } = state;
    return {
      works: isWritable,
      inputs: { queued, reserved, running },
      oldestWaitSeconds: oldestQueuedAt === null ? 0 : Math.max(0, (Date.now() - Date.parse(oldestQueuedAt)) / 1000),
      callbacksWaiting: callbacks,
      inputsWaitingFor: waiting,
    };
  }
}

/** Counts the queued inputs that need what is away, and those that wait for something else, such as space on a disk, by its kind. */
async function countWaiting(outages: readonly Outage[], store: WaitingCounts): Promise<StoreState['inputsWaitingFor']> {
  const away = outages.map(({ dependency }) => dependency);
  const byKind = Map.groupBy(away, (id) => dependencyOf(id)?.kind);
  const [waiting, ...needing] = await Promise.all([
    store.countWaiting(),
    ...[...byKind.values()].map(async (ids) => [ids[0] ?? '', await store.countNeeding(ids)] as const),
  ]);
  const counts: { [Kind in DependencyKind]?: number } = {};
  for (const [id, count] of [...needing, ...waiting.filter(([each]) => !away.includes(each))]) {
    const { kind } = dependencyOf(id) ?? {};
    if (kind !== undefined) counts[kind] = (counts[kind] ?? 0) + count;
  }
  return counts;
}
