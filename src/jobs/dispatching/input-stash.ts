import type { ClaimedInput } from '../store/claim-inputs.ts';

/** Inputs of one job that are claimed ahead: enough that a group of them shares one write. */
const AHEAD_PER_JOB = 48;
/** More are claimed when so few are left. */
const LOW_PER_JOB = 16;

interface JobStash {
  readonly inputs: ClaimedInput[];
  /** Room that is taken by a claim whose answer has not come. */
  room: number;
  /** Settles when that claim is answered. */
  coming: PromiseWithResolvers<void> | null;
}

/**
 * Inputs that are claimed ahead of their turn, by job: when the turn comes, the worker need not wait for the disk to
 * have the claim. Whose turn it is stays undecided until then, so the stash costs no fairness.
 */
export class InputStash {
  readonly #byJob = new Map<string, JobStash>();
  readonly #limit: number;
  #size = 0;

  /** `limit`: inputs of all jobs together. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Settles when the claim is answered that is under way for a job; undefined where none is. */
  coming(jobId: string): Promise<void> | undefined {
    return this.#byJob.get(jobId)?.coming?.promise;
  }

  /** Whether so few inputs of a job are left that more should be claimed. */
  isLow(jobId: string): boolean {
    const stash = this.#byJob.get(jobId);
    return stash === undefined || (stash.coming === null && stash.inputs.length <= LOW_PER_JOB);
  }

  /**
   * Notes that inputs of a job are being claimed, of which `waiting` wait, those stashed included; returns how many are
   * to be claimed ahead. `put` is to follow, whatever comes of it.
   */
  expect(jobId: string, waiting: number): number {
    const stash = this.#byJob.get(jobId) ?? { inputs: [], room: 0, coming: null };
    this.#byJob.set(jobId, stash);
    const wanted = Math.min(waiting, AHEAD_PER_JOB) - stash.inputs.length;
    stash.room = Math.max(0, Math.min(wanted, this.#limit - this.#size));
    stash.coming = Promise.withResolvers();
    this.#size += stash.room;
    return stash.room;
  }

  /** Puts in what was claimed; a job that was dropped meanwhile has no use for it. */
  put(jobId: string, claimed: readonly ClaimedInput[]): void {
    const stash = this.#byJob.get(jobId);
    if (stash === undefined) return;
    this.#size += claimed.length - stash.room;
    stash.room = 0;
    stash.inputs.push(...claimed);
    stash.coming?.resolve();
    stash.coming = null;
    this.#forgetEmpty(jobId, stash);
  }

  take(jobId: string): ClaimedInput | undefined {
    const stash = this.#byJob.get(jobId);
    const input = stash?.inputs.shift();
    if (input !== undefined) this.#size -= 1;
    if (stash !== undefined) this.#forgetEmpty(jobId, stash);
    return input;
  }

  /** Forgets a job, and what is claimed of it or being claimed. */
  drop(jobId: string): void {
    const stash = this.#byJob.get(jobId);
    if (stash === undefined) return;
    this.#size -= stash.inputs.length + stash.room;
    this.#byJob.delete(jobId);
    stash.coming?.resolve();
  }

  /** Takes out everything. */
  takeAll(): ClaimedInput[] {
    const all = [...this.#byJob.values()].flatMap(({ inputs }) => inputs);
    for (const jobId of [...this.#byJob.keys()]) this.drop(jobId);
    return all;
  }

  #forgetEmpty(jobId: string, { inputs, coming }: JobStash): void {
    if (inputs.length === 0 && coming === null) this.#byJob.delete(jobId);
  }
}
