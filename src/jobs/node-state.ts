import type { Config } from '#config/config.ts';
import { RELEASE } from '#config/release.ts';
import { INTERFACE_VERSION, type Readiness } from '#contract/service.ts';
import type { NodeState } from '#telemetry/metrics-state.ts';
import { usableIdentities } from './identities.ts';
import { type NodeIdentities, shownIdentities } from './node-identities.ts';
import type { Outage } from './outages/outages.ts';
import { awayDependencyOf, kindsAway, maySign } from './outages/waiting-for.ts';
import type { JobEngine } from './queue/job-queue.ts';

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
  readonly nodes: Pick<JobEngine, 'otherNodes'>;
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
export function nodeStateOf({ config, identities, outages, running, workerProcesses, nodes }: NodeParts): NodeState {
  return {
    inputsRunning: running,
    workerProcesses,
    queueCapacity: config.worker.queue_capacity,
    away: kindsAway(outages),
    identities: [
      ...(identities?.identities ?? []).map(({ name, notAfter }) => ({ name, endsAtMs: Date.parse(notAfter) })),
      ...[...(identities?.away.keys() ?? [])].map((name) => ({ name, endsAtMs: null })),
    ],
    otherNodes: nodes.otherNodes === undefined ? [] : nodes.otherNodes(),
  };
}
