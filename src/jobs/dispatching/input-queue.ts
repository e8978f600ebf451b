import { AppError } from '#errors/app-error.ts';

/** While both wait, every eighth start is of an asynchronous job, so that none of them starves. */
const ASYNC_START_INTERVAL = 8;

export interface QueueLimits {
  /** Inputs of one job that run at once on this node. */
  readonly maxRunningInputsPerJob: number;
  /** Jobs that have running inputs at once on this node. */
  readonly maxRunningJobs: number;
}

/** The job that an input was started of. */
export interface StartedInput {
  readonly jobId: string;
  readonly sync: boolean;
  readonly caller: string | null;
}

/** A job in the queue, as numbers, so that a hundred thousand inputs take little memory. The store knows which come next. */
interface QueueEntry {
  readonly jobId: string;
  readonly sync: boolean;
  /** The name of who submitted it; null where no tokens are set. */
  readonly caller: string | null;
  waiting: number;
  running: number;
  /** True while it is in one of the two FIFO queues. */
  inLine: boolean;
}

/**
 * Decides which job may start its next input. Jobs that somebody waits for come first; among equals the jobs take
 * turns, one input each, so that a batch of 10,000 does not hold up a job of one.
 */
export class InputQueue {
  readonly #limits: QueueLimits;
  readonly #jobs = new Map<string, QueueEntry>();
  readonly #syncLine = new FifoQueue<QueueEntry>();
  readonly #asyncLine = new FifoQueue<QueueEntry>();
  readonly #runningJobs = new Set<QueueEntry>();
  /** Running inputs of each named caller that has any. */
  readonly #runningOfCallers = new Map<string, number>();
  #syncStarts = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  /** Adds inputs that wait: of a new job, or of one that is here already. */
  add(jobId: string, sync: boolean, count: number, caller: string | null = null): void {
    const job = this.#jobs.get(jobId) ?? { jobId, sync, caller, waiting: 0, running: 0, inLine: false };
    this.#jobs.set(jobId, job);
    job.waiting += count;
    this.#lineUp(job);
  }

  /** Starts the next input, and returns its job, which counts as running from now on. Undefined when none may start. */
  start(): StartedInput | undefined {
    const isBelowLimit = this.#runningJobs.size < this.#limits.maxRunningJobs;
    return this.#begin(isBelowLimit ? this.#nextInLine((line) => this.#takeFrom(line)) : this.#nextOfRunning());
  }

  /**
   * Starts an input as `start` does, but only of a job that has nothing running, and whose caller, if named,
   * has nothing running.
   */
  startOfIdleJob(): StartedInput | undefined {
    if (this.#runningJobs.size >= this.#limits.maxRunningJobs) return undefined;
    const isIdle = ({ waiting, running, caller }: QueueEntry): boolean =>
      waiting > 0 && running === 0 && (caller === null || !this.#runningOfCallers.has(caller));
    // Found without being taken, so that those before it keep their positions.
    return this.#begin(this.#nextInLine((line) => line.find(isIdle)));
  }

  /** True when any input waits. */
  get hasQueued(): boolean {
    return this.#syncLine.size + this.#asyncLine.size > 0;
  }

  #begin(job: QueueEntry | undefined): StartedInput | undefined {
    if (job === undefined) return undefined;
    job.waiting -= 1;
    job.running += 1;
    this.#countRunning(job, 1);
    this.#runningJobs.delete(job);
    this.#runningJobs.add(job);
    this.#lineUp(job);
    return { jobId: job.jobId, sync: job.sync, caller: job.caller };
  }

  #countRunning({ caller }: QueueEntry, change: 1 | -1): void {
    if (caller === null) return;
    const running = (this.#runningOfCallers.get(caller) ?? 0) + change;
    if (running === 0) this.#runningOfCallers.delete(caller);
    else this.#runningOfCallers.set(caller, running);
  }

  /** Returns the number of waiting inputs of a job. */
  waitingOf(jobId: string): number {
    return this.#jobs.get(jobId)?.waiting ?? 0;
  }

  /** Returns true when inputs of a job run. */
  runs(jobId: string): boolean {
    return (this.#jobs.get(jobId)?.running ?? 0) > 0;
  }

  /** Takes away the inputs of a job that wait; returns how many did. */
  drop(jobId: string): number {
    const job = this.#jobs.get(jobId);
    if (job === undefined) return 0;
    const dropped = job.waiting;
    job.waiting = 0;
    if (job.running === 0) this.#jobs.delete(jobId);
    return dropped;
  }

  /** Records that an input of the job runs no more. */
  end(jobId: string): void {
    const job = this.#jobs.get(jobId);
    if (job === undefined) return;
    job.running -= 1;
    this.#countRunning(job, -1);
    if (job.running === 0) this.#runningJobs.delete(job);
    if (job.running === 0 && job.waiting === 0) this.#jobs.delete(jobId);
    else this.#lineUp(job);
  }

  /** Puts a job into its line: at most once, and not without inputs that wait. */
  #lineUp(job: QueueEntry): void {
    if (job.inLine || job.waiting === 0) return;
    job.inLine = true;
    (job.sync ? this.#syncLine : this.#asyncLine).push(job);
  }

  #nextInLine(next: (line: FifoQueue<QueueEntry>) => QueueEntry | undefined): QueueEntry | undefined {
    const isAsyncTurn = this.#syncStarts >= ASYNC_START_INTERVAL - 1;
    const lines = isAsyncTurn ? [this.#asyncLine, this.#syncLine] : [this.#syncLine, this.#asyncLine];
    for (const line of lines) {
      const job = next(line);
      if (job === undefined) continue;
      this.#syncStarts = job.sync && this.#asyncLine.size > 0 ? this.#syncStarts + 1 : 0;
      return job;
    }
    return undefined;
  }

  /**
   * Takes the first job of a line that may start. Those that may not are passed over: jobs at their limit, as a rule,
   * of which there are few.
   */
  #takeFrom(line: FifoQueue<QueueEntry>): QueueEntry | undefined {
    for (let left = line.size; left > 0; left -= 1) {
      const job = line.shift();
      if (job === undefined) return undefined;
      job.inLine = false;
      if (this.#mayStart(job)) return job;
      this.#lineUp(job);
    }
    return undefined;
  }

  /** Returns the running job whose last start is longest ago. It may also be in a queue, and stays in it. */
  #nextOfRunning(): QueueEntry | undefined {
    return [...this.#runningJobs].find((job) => this.#mayStart(job));
  }

  #mayStart(job: QueueEntry): boolean {
    return job.waiting > 0 && job.running < this.#limits.maxRunningInputsPerJob;
  }
}

/** Number of items that were taken after which they are removed from the list, all at once. */
const COMPACTION_BATCH_SIZE = 1024;

/** Takes turns: the one at the head comes, and may go to the end again. Each takes constant time on average. */
class FifoQueue<T> {
  #items: T[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  find(matches: (item: T) => boolean): T | undefined {
    for (let index = this.#head; index < this.#items.length; index += 1) {
      const item = this.#items[index] as T;
      if (matches(item)) return item;
    }
    return undefined;
  }

  shift(): T | undefined {
    if (this.size === 0) return undefined;
    const item = this.#items[this.#head];
    this.#head += 1;
    if (this.#head >= COMPACTION_BATCH_SIZE && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}

/** Counts waiting inputs, and bounds their number (`worker.queue_capacity`). */
export class QueueCapacity {
  readonly #limit: number;
  #waiting = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Throws `QUEUE_FULL`, or `JOB_EXCEEDS_QUEUE` when `count` exceeds the capacity. */
  reserve(count: number): void {
    const limit = this.#limit;
    if (count > limit) throw new AppError('JOB_EXCEEDS_QUEUE', { asked: count, limit }, { field: 'inputs' });
    if (this.#waiting + count > limit) {
      throw new AppError('QUEUE_FULL', { waiting: this.#waiting, asked: count, limit });
    }
    this.#waiting += count;
  }

  /** Adds inputs that were accepted before, even beyond the limit. */
  add(count: number): void {
    this.#waiting += count;
  }

  /** Releases capacity, never below zero: an input that another node accepted may start here before it was counted. */
  release(count: number): void {
    this.#waiting = Math.max(0, this.#waiting - count);
  }

  /** Replaces the count by one of the whole database. */
  correct(waiting: number): void {
    this.#waiting = waiting;
  }
}

/** Inputs that wait for a signature beside those that run: each keeps its worker, and not its slot. */
export const MAX_AWAITING_SIGNATURE = 8;

/** Inputs that run beyond the regular number at most, each in a worker that is started for it. */
export const MAX_EXTRA_SLOTS = 2;

/** An extra slot is offered when all slots are occupied and none was freed for this long. */
const STALL_TIMEOUT_MS = 1_000;

/**
 * Says when one more input may run than there are slots: inputs wait, and those that run have all held their slots for
 * long. The caller gives the extra slot only to a job that has nothing running, so that inputs that take long, or never end,
 * do not hold up everybody else.
 */
export class ExtraSlots {
  readonly #offer: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** `offer` is called when an extra input may start; it calls `await` again where more inputs wait. */
  constructor(offer: () => void) {
    this.#offer = offer;
  }

  /**
   * Starts the wait for an extra slot. To be called when inputs may wait and every slot is taken. Safe to call again.
   */
  await(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#offer();
    }, STALL_TIMEOUT_MS);
  }

  /** Restarts the wait, because a slot was freed: the others may follow. */
  freed(): void {
    this.#timer?.refresh();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
