import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { KILL_POINT_VARIABLE, type KillPoint } from './kill-point.ts';
import { processesWith } from './process-tree.ts';

const SERVICE = fileURLToPath(new URL('./chaos-service.ts', import.meta.url));
/** Every process of a node has the node's identifier in its environment. */
const NODE_VARIABLE = 'CHAOS_NODE';

/** A service that is started again and again in the same place. */
export interface ChaosNode {
  readonly id: string;
  readonly home: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Starts a node and returns when it is ready; with a point, it is killed there. */
export async function startNode(
  { id, home, settings }: ChaosNode,
  point: KillPoint | null = null,
  onSpawn: (pid: number) => void = () => undefined,
): Promise<RunningService> {
  return await startService({
    folder: home,
    program: SERVICE,
    onSpawn,
    settings: {
      SERVICE__JOBS__SCRATCH_DIR: join(home, 'data', 'scratch'),
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
