import type { Outages } from '../outages/outages.ts';
import type { LeaseRequest } from '../queue/job-queue.ts';
import type { InputRun } from './run-input.ts';

/** Inputs that run beyond the regular number at most, each in a worker that is started for it. */
export const MAX_EXTRA_SLOTS = 2;

/** Bounds on what runs at once on a node. */
export interface SlotBounds {
  /** Inputs of all jobs together; 0 when this node runs none. */
  readonly maxRunningInputs: number;
  /** Inputs of one job (`worker.default_max_files_parallel`). */
  readonly maxRunningInputsPerJob: number;
  /** Jobs that have running inputs (`worker.max_concurrent_batches`). */
  readonly maxRunningJobs: number;
}

/** The slots of running inputs: decides what may be leased next. `requested` counts the inputs of leases that are under way. */
export class Slots {
  readonly #bounds: SlotBounds;
  readonly #runs: ReadonlySet<InputRun>;
  readonly #outages: Outages;

  constructor(bounds: SlotBounds, runs: ReadonlySet<InputRun>, outages: Outages) {
    this.#bounds = bounds;
    this.#runs = runs;
    this.#outages = outages;
  }

  /** The number of slots that are taken. */
  get taken(): number {
    return this.#holders.length;
  }

  get areFull(): boolean {
    const { maxRunningInputs } = this.#bounds;
    return maxRunningInputs > 0 && this.taken >= maxRunningInputs;
  }

  /** Returns the next lease beside those that are under way; null when none may be. All its inputs may be of one job. */
  nextRequest(requested: number): LeaseRequest | null {
    const { maxRunningInputs, maxRunningInputsPerJob, maxRunningJobs } = this.#bounds;
    const { count: allowed, ...outageFilter } = this.#outageBounds();
    const counts = this.#takenByJob();
    const free = maxRunningInputs - this.taken - requested;
    const freeJobs = maxRunningJobs - counts.size - requested;
    const below = [...counts].filter(([, count]) => count + requested < maxRunningInputsPerJob);
    const freePerJob = maxRunningInputsPerJob - Math.max(0, ...below.map(([, count]) => count)) - requested;
    const count = Math.min(free, freePerJob, freeJobs > 0 ? freeJobs : free, allowed - requested);
    if (count <= 0 || (freeJobs <= 0 && below.length === 0)) return null;
    const belowIds = below.map(([jobId]) => jobId);
    return {
      count,
      onlyJobs: freeJobs > 0 ? null : belowIds,
      withoutJobs: [...counts.keys()].filter((jobId) => !belowIds.includes(jobId)),
      withoutCallers: [],
      ...outageFilter,
    };
  }

  /**
   * Returns a lease of one input beyond the number of slots, of a job and a caller that have nothing running: inputs that take
   * long, or never end, do not hold up everybody else. Null when none may be.
   */
  extraRequest(requested: number): LeaseRequest | null {
    const { maxRunningInputs, maxRunningJobs } = this.#bounds;
    const { count: allowed, ...outageFilter } = this.#outageBounds();
    const counts = this.#takenByJob();
    if (!this.areFull || requested > 0 || allowed <= 0) return null;
    if (this.taken >= maxRunningInputs + MAX_EXTRA_SLOTS || counts.size >= maxRunningJobs) return null;
    const withoutCallers = [...this.#runningCallers()];
    return { count: 1, onlyJobs: null, withoutJobs: [...counts.keys()], withoutCallers, ...outageFilter };
  }

  /** Does the same at once where one of the callers that wait has nothing running: it need not wait until the others stall. */
  requestForHeldUp(waitingCallers: readonly string[], requested: number): LeaseRequest | null {
    const running = this.#runningCallers();
    return waitingCallers.some((caller) => !running.has(caller)) ? this.extraRequest(requested) : null;
  }

  /** The runs that have a slot: an input that a dependency holds up needs no core, and may never end. */
  get #holders(): readonly InputRun[] {
    return [...this.#runs].filter(({ state, lease }) => state === 'has-slot' && !this.#outages.holdsUp(lease.needs));
  }

  /** Returns what may be leased while dependencies are away. */
  #outageBounds() {
    return this.#outages.bounds([...this.#runs].map(({ lease }) => lease.needs));
  }

  /** Returns the number of slots that each running job has. */
  #takenByJob(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { lease } of this.#holders) counts.set(lease.jobId, (counts.get(lease.jobId) ?? 0) + 1);
    return counts;
  }

  #runningCallers(): ReadonlySet<string> {
    return new Set(this.#holders.flatMap(({ lease }) => lease.caller ?? []));
  }
}
