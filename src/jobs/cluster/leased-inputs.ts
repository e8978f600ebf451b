import type { ByteProgress } from '#operations/operation.ts';
import type { InputRun, WorkItem } from '../dispatching/work-source.ts';
import type { InputAttempt } from '../job.ts';
import type { JobRequest, LeasedInput } from '../store/job-store.ts';
import { HEARTBEAT_SECONDS, type JobMessage } from '../store/postgres/message-queue.ts';
import type { PostgresJobStore } from '../store/postgres/postgres-job-store.ts';

/** The lease that a node relies on, shorter than the heartbeat timeout of its message by more than any pause of the process. */
const LEASE_MS = HEARTBEAT_SECONDS * 1000 - 2_000;

/** The least that is left of a lease when an output is committed. */
const MIN_LEASE_AT_COMMIT_MS = 3_000;

/** A job message that this node received, and the lease of its input; null when nothing is left to do. */
export interface LeasedMessage {
  readonly message: JobMessage;
  readonly lease: LeasedInput | null;
  /** The request, when the job has a single input. */
  readonly singleInputRequest: JobRequest | null;
  readonly jobFinished: boolean;
  /** The time of the lease clock before the database was asked. */
  readonly askedAtMs: number;
}

/** An input that was leased by this node, and runs here. */
export interface RunningLease extends WorkItem {
  readonly message: JobMessage;
  readonly lease: LeasedInput;
  /** The request, when the job has a single input. */
  readonly request: JobRequest | null;
  readonly timer: LeaseTimer;
  lost: boolean;
  /** Its slot is free: its run has finished, or waits for a signature. */
  hasNoSlot: boolean;
  recordedProgress: ByteProgress;
}

/** The inputs that run on this node, each for as long as its lease holds. */
export class LeasedInputs {
  readonly clock = leaseClock();
  readonly #store: Pick<PostgresJobStore, 'renew'>;
  readonly #inputs = new Set<RunningLease>();

  constructor(store: Pick<PostgresJobStore, 'renew'>) {
    this.#store = store;
  }

  /** The jobs of the leased inputs. */
  get jobs(): readonly string[] {
    return [...new Set([...this.#inputs].map(({ lease }) => lease.jobId))];
  }

  /** The number of running inputs of each job that has any. */
  get running(): ReadonlyMap<string, number> {
    return this.#countRunning(() => true);
  }

  /** The same of the jobs that may have more inputs than those that run. */
  get runningOfSeveral(): ReadonlyMap<string, number> {
    return this.#countRunning(({ request }) => request === null);
  }

  of(lease: InputAttempt): RunningLease | undefined {
    return [...this.#inputs].find((input) => input.lease === lease);
  }

  /** Returns the input of a job that has no other. */
  singleInputOf(jobId: string): RunningLease | undefined {
    return [...this.#inputs].find(({ lease, request }) => lease.jobId === jobId && request !== null);
  }

  add(taken: LeasedMessage, lease: LeasedInput, run: InputRun): RunningLease {
    const { message, singleInputRequest: request, askedAtMs } = taken;
    const timer = new LeaseTimer(this.clock, askedAtMs, LEASE_MS);
    const now = { timer, lost: false, hasNoSlot: false, recordedProgress: run.progress };
    const input: RunningLease = { message, lease, request, run, ...now };
    this.#inputs.add(input);
    return input;
  }

  remove(input: RunningLease): void {
    this.#inputs.delete(input);
  }

  /** Renews the leases; resolves with the inputs whose lease is lost. */
  async renew(): Promise<readonly RunningLease[]> {
    const inputs = [...this.#inputs].filter(({ lost }) => !lost);
    const askedAtMs = this.clock();
    const lost = new Set(await this.#store.renew(inputs.map(({ message }) => message)));
    for (const input of inputs) {
      input.lost = lost.has(input.message) && this.#inputs.has(input);
      if (!lost.has(input.message)) input.timer.renew(askedAtMs);
    }
    return inputs.filter((input) => input.lost);
  }

  /** Returns true when the output may be committed now. Waits for a renewal while the lease may be over; false after an abort. */
  async isPublishable({ timer, run }: RunningLease): Promise<boolean> {
    const { signal } = run.abort;
    const aborted = Promise.withResolvers<void>();
    const abort = () => aborted.resolve();
    signal.addEventListener('abort', abort, { once: true });
    try {
      while (!signal.aborted && !timer.covers(MIN_LEASE_AT_COMMIT_MS))
        await Promise.race([timer.renewed, aborted.promise]);
      return !signal.aborted;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  #countRunning(isCounted: (input: RunningLease) => boolean): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const input of this.#inputs) {
      const { jobId } = input.lease;
      if (!input.hasNoSlot && isCounted(input)) counts.set(jobId, (counts.get(jobId) ?? 0) + 1);
    }
    return counts;
  }

  /** Returns the inputs whose progress changed since the last call. */
  takeChangedProgress(): (InputAttempt & ByteProgress)[] {
    const changed = [...this.#inputs].filter(({ run, recordedProgress }) => run.progress !== recordedProgress);
    return changed.map((input) => {
      const { jobId, inputIndex, attempt } = input.lease;
      input.recordedProgress = input.run.progress;
      return { jobId, inputIndex, attempt, ...input.recordedProgress };
    });
  }
}

/** Returns the time in milliseconds since any moment; it never goes back. */
export type LeaseClock = () => number;

/** The two clocks of `leaseClock` differ by up to this without a cause: the one on the wall counts whole milliseconds. */
const CLOCK_RESOLUTION_MS = 1;

/**
 * Returns a clock that since its last reading ran as fast as the faster of two: the monotonic one stands still while a
 * machine is suspended, and the one on the wall may be set back. At worst a lease seems over early, and is renewed.
 */
export function leaseClock(): LeaseClock {
  let [monotonicMs, wallMs] = [performance.now(), Date.now()];
  let skippedMs = 0;
  return () => {
    const [nowMs, wallNowMs] = [performance.now(), Date.now()];
    const aheadMs = wallNowMs - wallMs - (nowMs - monotonicMs);
    if (aheadMs > CLOCK_RESOLUTION_MS) skippedMs += aheadMs;
    [monotonicMs, wallMs] = [nowMs, wallNowMs];
    return nowMs + skippedMs;
  };
}

/**
 * The time for which an input belongs to this node. Measured here, from before the database was asked, so that it expires
 * earlier than in the database.
 */
export class LeaseTimer {
  readonly #clock: LeaseClock;
  readonly #durationMs: number;
  #endsAtMs: number;
  #renewed = Promise.withResolvers<void>();

  /** `askedAtMs`: the clock's time before the database was asked. */
  constructor(clock: LeaseClock, askedAtMs: number, durationMs: number) {
    this.#clock = clock;
    this.#durationMs = durationMs;
    this.#endsAtMs = askedAtMs + durationMs;
  }

  renew(askedAtMs: number): void {
    this.#endsAtMs = Math.max(this.#endsAtMs, askedAtMs + this.#durationMs);
    this.#renewed.resolve();
    this.#renewed = Promise.withResolvers();
  }

  /** Returns true when it lasts at least this long from now on. */
  covers(boundMs: number): boolean {
    return this.#clock() + boundMs <= this.#endsAtMs;
  }

  /** Settles when it is renewed the next time. */
  get renewed(): Promise<void> {
    return this.#renewed.promise;
  }
}
