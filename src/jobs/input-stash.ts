import type { ClaimedInput } from './store/claim-input.ts';

/** A claim that is being written, or is on the disk; null where there was nothing to claim. */
export type ComingInput = Promise<ClaimedInput | null>;

/**
 * Inputs that are claimed ahead of their turn, by job: when the turn comes, the worker need not wait for the disk to
 * have the claim. Whose turn it is stays undecided until then, so the stash costs no fairness.
 */
export class InputStash {
  readonly #byJob = new Map<string, ComingInput[]>();
  readonly #limit: number;
  #size = 0;

  /** `limit`: inputs of all jobs together. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether one more input may be claimed ahead for a job of which `waiting` inputs wait, those stashed included. */
  hasRoom(jobId: string, waiting: number): boolean {
    return this.#size < this.#limit && (this.#byJob.get(jobId)?.length ?? 0) < waiting;
  }

  put(jobId: string, input: ComingInput): void {
    const inputs = this.#byJob.get(jobId) ?? [];
    this.#byJob.set(jobId, inputs);
    inputs.push(input);
    this.#size += 1;
  }

  take(jobId: string): ComingInput | undefined {
    const inputs = this.#byJob.get(jobId);
    const input = inputs?.shift();
    if (inputs?.length === 0) this.#byJob.delete(jobId);
    if (input !== undefined) this.#size -= 1;
    return input;
  }

  takeAll(): ComingInput[] {
    const all = [...this.#byJob.values()].flat();
    this.#byJob.clear();
    this.#size = 0;
    return all;
  }
}
