import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningService } from '../../scripts/running-service.ts';
import { childrenOf, commandOf, kill, killTree } from '../support/process-tree.ts';
import { hasUnendedJobs } from './chaos-client.ts';
import type { ChaosEnvironment } from './chaos-environment.ts';
import { processesOf } from './chaos-node.ts';
import type { KillPoint } from './kill-point.ts';

const LOOK_INTERVAL_MS = 40;

/** An event that meets a node while it has jobs. The first two kinds kill it, the others leave it running. */
export type Disturbance =
  | { readonly kind: 'moment'; readonly afterMs: number; readonly takesWorkersAlong: boolean }
  | { readonly kind: 'point'; readonly point: KillPoint }
  /** Its input workers are killed, with the programs that they run or without. */
  | { readonly kind: 'workers'; readonly afterMs: number; readonly takesProgramsAlong: boolean }
  /** The PostgreSQL server crashes, and is started again. */
  | { readonly kind: 'database'; readonly afterMs: number; readonly pauseMs: number }
  /** Nothing gets through between the node and its database, and nobody is told; then everything does. */
  | { readonly kind: 'partition'; readonly afterMs: number; readonly pauseMs: number };

type DisturbanceOf<Kind extends Disturbance['kind']> = Extract<Disturbance, { kind: Kind }>;

/** The disturbed node, and its requests. */
export interface Disturbed {
  readonly service: RunningService;
  /** Address at which jobs can be looked up: the node itself, or another one. */
  readonly door: string;
  /** Settles when every job that was sent has been answered. */
  readonly sent: Promise<unknown>;
}

/** Resolves when the disturbance is over. */
export async function disturb(
  environment: ChaosEnvironment,
  disturbed: Disturbed,
  disturbance: Disturbance,
): Promise<void> {
  switch (disturbance.kind) {
    case 'moment':
      return killAtMoment(environment, disturbed, disturbance);
    case 'point':
      return untilKilled(environment, disturbed, disturbance);
    case 'workers':
      return killWorkers(environment, disturbed, disturbance);
    case 'database':
      return crashDatabase(environment, disturbance);
    case 'partition':
      return cutOff(environment, disturbance);
  }
}

/** To be called when the node was killed: cuts the power of its disk, once nothing of the node runs any more. */
export async function losePower({ node, disk, counts }: ChaosEnvironment): Promise<void> {
  if (disk === null) return;
  for (let left = processesOf(node); left.length > 0; left = processesOf(node)) {
    for (const pid of left) kill(pid);
    await sleep(LOOK_INTERVAL_MS);
  }
  disk.cutPower();
  counts.add('power cuts');
}

async function killAtMoment(
  environment: ChaosEnvironment,
  { service }: Disturbed,
  { afterMs, takesWorkersAlong }: DisturbanceOf<'moment'>,
): Promise<void> {
  await sleep(afterMs);
  if (takesWorkersAlong) killTree(service.pid);
  else kill(service.pid);
  await service.ended;
  await losePower(environment);
  environment.counts.add('killed at a random moment');
}

/** An input may not come to the point, as when another kill came first in its worker; then the service is killed at rest. */
async function untilKilled(
  environment: ChaosEnvironment,
  { service, door, sent }: Disturbed,
  { point: { operation, moment } }: DisturbanceOf<'point'>,
): Promise<void> {
  const { counts, reachedPoints } = environment;
  let isKilled = false;
  void service.ended.then(() => {
    isKilled = true;
  });
  await Promise.race([sent, service.ended]);
  while (!isKilled && (await hasUnendedJobs(door))) await sleep(LOOK_INTERVAL_MS);
  const name = `${operation}: ${moment}`;
  if (isKilled) reachedPoints.add(name);
  else kill(service.pid);
  counts.add(isKilled ? `killed at ${name}` : 'killed at rest, as its point was not reached');
  await service.ended;
  await losePower(environment);
}

async function killWorkers(
  { counts }: ChaosEnvironment,
  { service }: Disturbed,
  { afterMs, takesProgramsAlong }: DisturbanceOf<'workers'>,
): Promise<void> {
  await sleep(afterMs);
  const workers = childrenOf(service.pid).filter((pid) => commandOf(pid).includes('chaos-worker'));
  for (const pid of workers) (takesProgramsAlong ? killTree : kill)(pid);
  counts.add('input workers killed alone', workers.length);
  counts.add('rounds in which only input workers were killed');
}

async function crashDatabase(
  { counts, cluster }: ChaosEnvironment,
  { afterMs, pauseMs }: DisturbanceOf<'database'>,
): Promise<void> {
  assert(cluster !== null);
  await sleep(afterMs);
  await cluster.server.restart(pauseMs);
  counts.add('crashes of the PostgreSQL server');
}

async function cutOff(
  { counts, cluster }: ChaosEnvironment,
  { afterMs, pauseMs }: DisturbanceOf<'partition'>,
): Promise<void> {
  assert(cluster !== null);
  await sleep(afterMs);
  cluster.proxy.freeze();
  await sleep(pauseMs);
  cluster.proxy.heal();
  counts.add('partitions between a node and its database');
}
