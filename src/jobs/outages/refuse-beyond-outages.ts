import { AppError } from '#errors/app-error.ts';
import { dependencyOf } from '../dependencies.ts';
import type { JobStore } from '../store/job-store.ts';
import type { Outage } from './outages.ts';

interface Environment {
  readonly outages: readonly Outage[];
  readonly store: Pick<JobStore, 'countNeeding'>;
  /** Bound on waiting inputs (`worker.queue_capacity`): half of them may wait for what is away. */
  readonly capacity: number;
}

/**
 * Throws `DEPENDENCY_AWAY` for a submission of which inputs need what is away, where half of the queue waits for that. `needs`
 * has the dependencies of each input.
 */
export async function refuseBeyondOutages(
  needs: readonly (readonly string[])[],
  { outages, store, capacity }: Environment,
): Promise<void> {
  const away = outages.filter(({ allowed }) => allowed === 0).map(({ dependency }) => dependency);
  const asking = needs.filter((each) => each.some((dependency) => away.includes(dependency)));
  const [needed] = away.filter((dependency) => asking.some((each) => each.includes(dependency)));
  if (needed === undefined) return;
  const limit = Math.floor(capacity / 2);
  const waiting = await store.countNeeding(away);
  if (waiting + asking.length <= limit) return;
  throw new AppError('DEPENDENCY_AWAY', { kind: dependencyOf(needed)?.kind ?? needed, waiting, limit });
}
