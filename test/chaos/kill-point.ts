import type { InputPhase, OperationName } from '#operations/operation.ts';

/** Before anything of an input is done, every phase it reaches, and after it was done but before anybody knows. */
export type KillMoment = 'started' | InputPhase | 'returned';

/** The point at which a worker kills its service: when an input of the operation reaches a phase for the n-th time in that worker. */
export interface KillPoint {
  readonly operation: OperationName;
  readonly moment: KillMoment;
  readonly nth: number;
  /** Ends the worker in the same moment, which otherwise lives on for as long as the news of its loss takes. */
  readonly takesWorkerAlong: boolean;
}

/** Variable that names the kill point; without it, the service is not changed. */
export const KILL_POINT_VARIABLE = 'CHAOS_KILL_POINT';

/** Variable that marks the processes of a node. */
export const NODE_VARIABLE = 'CHAOS_NODE';
