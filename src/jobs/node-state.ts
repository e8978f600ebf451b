import type { Config } from '#config/config.ts';
import { RELEASE } from '#config/release.ts';
import { INTERFACE_VERSION, type Readiness } from '#contract/service.ts';
import type { DependencyKind } from '#errors/entry.ts';
import type { NodeState, OtherNode, StoreState } from '#telemetry/metrics.ts';
import { dependencyOf } from './dependencies.ts';
import { type NodeIdentities, shownIdentities, usableIdentities } from './identities.ts';
import type { Outage } from './outages/outages.ts';
import { awayDependencyOf, kindsAway, maySign } from './outages/waiting-for.ts';
import type { JobStore } from './store/job-store.ts';

/** The parts of a node that tell how it is. */
export interface NodeParts {
  readonly config: Config;
  /** Undefined where it signs nothing. */
  readonly identities: NodeIdentities | undefined;
  /** Empty before the start. */
  readonly outages: readonly Outage[];
  /** Inputs that wait, and that run. */
  readonly waiting: number;
  readonly running: number;
  readonly maxRunning: number;
  readonly workerProcesses: number;
  /** Null while the database that they share cannot be reached. */
  readonly otherNodes: readonly OtherNode[] | null;
}

/** Returns the state of a node for `/v2/health/ready`. It is not ready while its queue is full, or nothing can be signed. */
export function readinessOf(node: NodeParts, isHealthy: boolean, isAdmin: boolean): Readiness {
  const { config, identities, outages, waiting, running, maxRunning, workerProcesses } = node;
  const { jobs, worker } = config;
  const isFull = jobs.role !== 'worker' && waiting >= worker.queue_capacity;
  const [first] = identities?.identities ?? [];
  return {
    ready: isHealthy && !isFull && canSign(node),
    version: RELEASE.version,
    interface_version: INTERFACE_VERSION,
    role: jobs.role,
    ...(first !== undefined && { identity: { kind: first.kind, not_after: first.notAfter } }),
    ...(isAdmin && identities !== undefined && { identities: shownIdentities(identities, config) }),
    store: { engine: jobs.database_url === undefined ? 'sqlite' : 'postgresql', reachable: isHealthy },
    queue: { waiting, capacity: worker.queue_capacity },
    dependencies: outages.map((outage) => awayDependencyOf(outage, isAdmin)),
    workers: { running, limit: maxRunning, processes: workerProcesses },
  };
}

/** Tells whether a node can sign with one of its identities; one that only takes jobs, whether some node may. */
function canSign({ config, identities, outages }: NodeParts): boolean {
  if (identities === undefined) return usableIdentities(null, config).some((name) => maySign(name, outages, config));
  return identities.identities.some(
    ({ name, notAfter }) => Date.parse(notAfter) > Date.now() && maySign(name, outages, config),
  );
}

/** Returns the state of a node for its metrics. */
export function nodeStateOf({ config, identities, outages, ...node }: NodeParts): NodeState {
  return {
    inputsRunning: node.running,
    workerProcesses: node.workerProcesses,
    queueCapacity: config.worker.queue_capacity,
    away: kindsAway(outages),
    identities: [
      ...(identities?.identities ?? []).map(({ name, notAfter }) => ({ name, endsAtMs: Date.parse(notAfter) })),
      ...[...(identities?.away.keys() ?? [])].map((name) => ({ name, endsAtMs: null })),
    ],
    otherNodes: node.otherNodes,
  };
}

type WaitingCounts = Pick<JobStore, 'countNeeding' | 'countWaiting'>;

/** Reads what metrics say of the store, apart from whether it can be written. */
export async function readStoreState(
  store: Pick<JobStore, 'queueState'> & WaitingCounts,
  outages: readonly Outage[],
): Promise<Omit<StoreState, 'works'>> {
  const [state, inputsWaitingFor] = await Promise.all([store.queueState(), countWaiting(outages, store)]);
  const { oldestQueuedAt, callbacks: callbacksWaiting, ...inputs } = state;
  const oldestWaitMs = oldestQueuedAt === null ? 0 : Date.now() - Date.parse(oldestQueuedAt);
  return { inputs, oldestWaitSeconds: Math.max(0, oldestWaitMs / 1000), callbacksWaiting, inputsWaitingFor };
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
