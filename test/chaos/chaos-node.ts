import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { processesWith } from '../support/process-tree.ts';
import { KILL_POINT_VARIABLE, type KillPoint, NODE_VARIABLE } from './kill-point.ts';

const SERVICE = fileURLToPath(new URL('./chaos-service.ts', import.meta.url));
/** Every process of a node has the node's identifier in its environment. */

/** The role of a node: takes jobs (`api`), does them (`worker`), or both. */
export type NodeRole = 'all' | 'api' | 'worker';

/** A service that is started again and again in the same folder. */
export interface ChaosNode {
  readonly id: string;
  readonly home: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Options of a node's start. */
export interface NodeStart {
  readonly role?: NodeRole;
  /** It is killed there. */
  readonly point?: KillPoint | null;
  /** Told its process as soon as there is one. */
  readonly onSpawn?: (pid: number) => void;
}

export function nodeAt(home: string, settings: Readonly<Record<string, string>>): ChaosNode {
  return { id: randomUUID(), home, settings };
}

/** Starts a node and returns when it is ready. */
export async function startNode(
  { id, home, settings }: ChaosNode,
  { role = 'all', point = null, onSpawn }: NodeStart = {},
): Promise<RunningService> {
  return await startService({
    folder: home,
    program: SERVICE,
    ...(onSpawn && { onSpawn }),
    settings: {
      SERVICE__JOBS__SCRATCH_DIR: join(home, 'data', 'scratch'),
      SERVICE__JOBS__ROLE: role,
      ...settings,
      [NODE_VARIABLE]: id,
      ...(point !== null && { [KILL_POINT_VARIABLE]: JSON.stringify(point) }),
    },
  });
}

/** Processes that the node started, and itself. */
export function processesOf({ id }: ChaosNode): number[] {
  return processesWith(NODE_VARIABLE, id);
}
