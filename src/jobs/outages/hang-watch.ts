import { dependencyOf, isBucket, isSigner, mayHang } from '../dependencies.ts';
import type { InputRun } from '../scheduling/run-input.ts';
import type { LeasedInput } from '../store/job-store.ts';
import type { Outages } from './outages.ts';

/** The interval of looking at the runs, in milliseconds. */
const LOOK_INTERVAL_MS = 250;

/** The time without progress after which the folders and buckets of an input are tried, in milliseconds. */
const SILENCE_MS = 1_000;

/**
 * The time without an answer after which inputs that need a folder or bucket leave their slots to others, in milliseconds. A process
 * that tries a bucket loads the SDK first.
 */
const FOLDER_DOUBT_MS = 1_000;
const BUCKET_DOUBT_MS = 3_000;

/**
 * The time without a signature after which inputs of an identity leave their slots to others, in milliseconds. The signer itself ends
 * what takes too long.
 */
const SIGNER_DOUBT_MS = 1_000;

/**
 * The time without progress after which an input is stopped where its folder or bucket cannot be used, and between two tries of one,
 * in milliseconds.
 */
const STALL_MS = 5_000;

/** A run that may hang. */
type WatchedRun = Pick<InputRun, 'idleMs' | 'signatureMs' | 'heldUpBy' | 'holdUp'> & {
  readonly lease: Pick<LeasedInput, 'needs'>;
};

/**
 * Finds folders and buckets that hang, and stops the inputs that make no progress because of them: a process in a dead network file
 * system says nothing itself, and one that waits for a silent server does so after minutes. That is certain after
 * as long as a slow server may need. Until then their slots are free for others, and so are those of inputs that wait for a signer.
 */
export class HangWatch {
  readonly #runs: ReadonlySet<WatchedRun>;
  readonly #outages: Outages;
  readonly #timer: NodeJS.Timeout;
  /** Dependencies that are being tried, or were a moment ago. */
  readonly #tried = new Set<string>();
  /** Signers that have not signed for a while. */
  #silentSigners: ReadonlySet<string> = new Set();

  constructor(runs: ReadonlySet<WatchedRun>, outages: Outages) {
    this.#runs = runs;
    this.#outages = outages;
    this.#timer = setInterval(() => this.#look(), LOOK_INTERVAL_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const needs = new Set(this.#without(SILENCE_MS).flatMap(({ lease }) => lease.needs.filter(mayHang)));
    for (const dependency of needs) if (!this.#tried.has(dependency)) void this.#try(dependency);
    this.#lookAtSigners();
  }

  #lookAtSigners(): void {
    const waiting = [...this.#runs].filter(({ signatureMs }) => signatureMs > SIGNER_DOUBT_MS);
    const silent = new Set(waiting.flatMap(({ lease }) => lease.needs.filter(isSigner)));
    const known = this.#silentSigners;
    this.#silentSigners = silent;
    for (const signer of silent) if (!known.has(signer)) this.#outages.doubt(signer);
    for (const signer of known) if (!silent.has(signer)) this.#outages.trust(signer);
  }

  async #try(dependency: string): Promise<void> {
    this.#tried.add(dependency);
    const doubtMs = isBucket(dependencyOf(dependency)?.kind) ? BUCKET_DOUBT_MS : FOLDER_DOUBT_MS;
    const doubt = setTimeout(() => this.#outages.doubt(dependency), doubtMs).unref();
    const problem = await this.#outages.problemOf(dependency);
    clearTimeout(doubt);
    const stalled = this.#without(STALL_MS).filter(({ lease }) => lease.needs.includes(dependency));
    if (problem !== null && stalled.length > 0) {
      const error = this.#outages.hangs(dependency, problem);
      for (const run of stalled) run.holdUp(error);
    }
    this.#outages.trust(dependency);
    setTimeout(() => this.#tried.delete(dependency), STALL_MS).unref();
  }

  /** Returns the runs without progress for a time. */
  #without(ms: number): readonly WatchedRun[] {
    return [...this.#runs].filter(({ idleMs, heldUpBy }) => idleMs > ms && heldUpBy === null);
  }
}
