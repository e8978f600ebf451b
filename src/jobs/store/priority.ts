/** The priority by which inputs of sync jobs precede all others: somebody waits for them. */
const SYNC_PRIORITY = 100;

/**
 * Bound on the backlog that counts: enough that the first inputs of another caller precede, and few enough that a caller's
 * own small job does not wait for most of its large one.
 */
export const MAX_COUNTED_BACKLOG = 31;

/** The properties of an input that its priority follows from. */
interface PlaceInQueue {
  readonly sync: boolean;
  /** The index of the input in its job. */
  readonly inputIndex: number;
  /** The number of unfinished inputs that its caller had at submission; 0 where there are no callers. */
  readonly backlog: number;
}

/**
 * Returns the priority of an input, which is given once, at submission. Higher ones are leased first, equal ones in the order
 * of submission. It falls by one with each doubling of what precedes the input in its job and its caller's backlog, so that a
 * small batch overtakes the rest of a large one, and so does another caller's.
 */
export function priorityOf({ sync, inputIndex, backlog }: PlaceInQueue): number {
  const position = inputIndex + Math.min(backlog, MAX_COUNTED_BACKLOG);
  return (sync ? SYNC_PRIORITY : 0) - Math.floor(Math.log2(position + 1));
}

/** The number of leases of which one prefers inputs of low priority, so that none of them starves. */
export const LOW_PRIORITY_INTERVAL = 8;

/** The highest priority of a job that is not sync, and the lower ones that take turns at being preferred. */
const ASYNC_PRIORITY = 0;
const LOW_PRIORITIES = [ASYNC_PRIORITY, -1, -3, -7] as const;

/** The largest number of the column, which bounds nothing. */
const ANY_PRIORITY = 2 ** 31 - 1;

/** Returns the bounds on priorities that prefer none. */
export const ANY_PRIORITIES: readonly number[] = [ANY_PRIORITY];

/**
 * Counts leases, and returns upper bounds of priorities: a lease takes inputs within the first bound, then within the next one
 * while it needs more.
 */
export class LeaseTurns {
  #leases = 0;

  /** Returns the bounds of the next lease. */
  next(): readonly number[] {
    this.#leases += 1;
    return this.#leases % LOW_PRIORITY_INTERVAL === 0 ? this.low : ANY_PRIORITIES;
  }

  /** The bounds of a lease that prefers inputs of low priority. */
  get low(): readonly number[] {
    const turn = Math.floor(this.#leases / LOW_PRIORITY_INTERVAL) % LOW_PRIORITIES.length;
    return [LOW_PRIORITIES[turn] ?? ASYNC_PRIORITY, ASYNC_PRIORITY, ANY_PRIORITY];
  }
}

/** Sorts inputs in the order in which they are leased. Identifiers of jobs sort by submission time. */
export function compareInputs(
  a: { readonly priority: number; readonly jobId: string; readonly inputIndex: number },
  b: { readonly priority: number; readonly jobId: string; readonly inputIndex: number },
): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  if (a.jobId !== b.jobId) return a.jobId < b.jobId ? -1 : 1;
  return a.inputIndex - b.inputIndex;
}
