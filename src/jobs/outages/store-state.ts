import { ThrottledQuery } from '#concurrency/throttled-query.ts';
import type { StoreState } from '#telemetry/metrics-state.ts';
import { dependencyOf } from '../dependencies.ts';
import type { JobStore, QueueState } from '../store/job-store.ts';
import type { Outage } from './outages.ts';

/** Reads what metrics say of the store, by throttled queries. */
export class StoreStateReader {
  readonly #queue: ThrottledQuery<QueueState>;
  readonly #waiting: ThrottledQuery<StoreState['inputsWaitingFor']>;

  constructor(store: Pick<JobStore, 'queueState' | 'countNeeding'>, outages: () => readonly Outage[]) {
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

/** Counts the queued inputs that need what is away, by its kind. */
async function countWaiting(
  outages: readonly Outage[],
  store: Pick<JobStore, 'countNeeding'>,
): Promise<StoreState['inputsWaitingFor']> {
  const ids = outages.map(({ dependency }) => dependency);
  const byKind = Map.groupBy(ids, (id) => dependencyOf(id)?.kind);
  const counts = await Promise.all(
    [...byKind].map(async ([kind, ofKind]) => (kind === undefined ? {} : { [kind]: await store.countNeeding(ofKind) })),
  );
  return Object.assign({}, ...counts) as StoreState['inputsWaitingFor'];
}
