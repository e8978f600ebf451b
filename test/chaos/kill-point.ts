import type { InputPhase, OperationName } from '#operations/operation.ts';

/** Before anything of an input is done, every phase it reaches, and after it was done but before anybody knows. */
export type KillMoment = 'started' | InputPhase | 'returned';

/** Where a worker ends its service: when an input of the operation comes there for the n-th time in that worker. */
export interface KillPoint {
  readonly operation: OperationName;
  readonly moment: KillMoment;
  readonly nth: number;
  /** Ends the worker in the same moment, which otherwise lives on for as long as the news of its loss takes. */
  readonly takesWorkerAlong: boolean;
}

/** How a service is told of its kill point; without it, it is the service as it is. */
export const KILL_POINT_VARIABLE = 'CHAOS_KILL_POINT';

/** How the processes of a node are told from those of others. */
export const NODE_VARIABLE = 'CHAOS_NODE';
