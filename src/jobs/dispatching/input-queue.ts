import { TurnQueue } from './turn-queue.ts';

/** While both wait, one start in so many goes to the jobs that nobody waits for, so that they come forward too. */
const ASYNC_TURN_EVERY = 8;

export interface QueueLimits {
  /** Inputs of one job that run at once. */
  readonly maxInputsPerJob: number;
  /** Jobs that have running inputs at once. */
  readonly maxRunningJobs: number;
}

/** The job that an input was started of. */
export interface StartedInput {
  readonly jobId: string;
  readonly sync: boolean;
}

/** A job in the queue: numbers only, so that a hundred thousand inputs take no room. The store knows which come next. */
interface QueuedJob {
  readonly jobId: string;
  readonly sync: boolean;
  waiting: number;
  running: number;
  /** Whether it stands in one of the two lines. */
  inLine: boolean;
}

/**
 * Decides which job may start its next input. Jobs that somebody waits for come first; among equals the jobs take
 * turns, one input each, so that a batch of 10,000 does not hold up a job of one.
 */
export class InputQueue {
  readonly #limits: QueueLimits;
  readonly #jobs = new Map<string, QueuedJob>();
  readonly #syncLine = new TurnQueue<QueuedJob>();
  readonly #asyncLine = new TurnQueue<QueuedJob>();
  readonly #runningJobs = new Set<QueuedJob>();
  #syncStarts = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  /** Adds inputs that wait: of a new job, or of one that is here already. */
  add(jobId: string, sync: boolean, count: number): void {
    const job = this.#jobs.get(jobId) ?? { jobId, sync, waiting: 0, running: 0, inLine: false };
    this.#jobs.set(jobId, job);
    job.waiting += count;
    this.#lineUp(job);
  }

  /** The job whose next input starts now; it counts as running from here on. Undefined where none may. */
  start(): StartedInput | undefined {
    const mayStart = (job: QueuedJob) => this.#mayStart(job);
    const hasRoom = this.#runningJobs.size < this.#limits.maxRunningJobs;
    return this.#begin(hasRoom ? this.#nextInLine(mayStart) : this.#nextOfRunning());
  }

  /** As `start`, but only of a job that has nothing running. */
  startOfIdleJob(): StartedInput | undefined {
    if (this.#runningJobs.size >= this.#limits.maxRunningJobs) return undefined;
    return this.#begin(this.#nextInLine(({ waiting, running }) => waiting > 0 && running === 0));
  }

  /** Whether any input waits. */
  get hasWaiting(): boolean {
    return this.#syncLine.size + this.#asyncLine.size > 0;
  }

  #begin(job: QueuedJob | undefined): StartedInput | undefined {
    if (job === undefined) return undefined;
    job.waiting -= 1;
    job.running += 1;
    this.#runningJobs.delete(job);
    this.#runningJobs.add(job);
    this.#lineUp(job);
    return { jobId: job.jobId, sync: job.sync };
  }

  /** How many inputs of a job wait. */
  waitingOf(jobId: string): number {
    return this.#jobs.get(jobId)?.waiting ?? 0;
  }

  /** Whether inputs of a job run. */
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

  /** An input of the job runs no more. */
  end(jobId: string): void {
    const job = this.#jobs.get(jobId);
    if (job === undefined) return;
    job.running -= 1;
    if (job.running === 0) this.#runningJobs.delete(job);
    if (job.running === 0 && job.waiting === 0) this.#jobs.delete(jobId);
    else this.#lineUp(job);
  }

  /** A job stands in its line at most once, and not without inputs that wait. */
  #lineUp(job: QueuedJob): void {
    if (job.inLine || job.waiting === 0) return;
    job.inLine = true;
    (job.sync ? this.#syncLine : this.#asyncLine).push(job);
  }

  #nextInLine(mayStart: (job: QueuedJob) => boolean): QueuedJob | undefined {
    const asyncTurn = this.#syncStarts >= ASYNC_TURN_EVERY - 1;
    const lines = asyncTurn ? [this.#asyncLine, this.#syncLine] : [this.#syncLine, this.#asyncLine];
    for (const line of lines) {
      const job = this.#takeFrom(line, mayStart);
      if (job === undefined) continue;
      this.#syncStarts = job.sync && this.#asyncLine.size > 0 ? this.#syncStarts + 1 : 0;
      return job;
    }
    return undefined;
  }

  /** At most as many jobs are passed over as are running, because only those may not start. */
  #takeFrom(line: TurnQueue<QueuedJob>, mayStart: (job: QueuedJob) => boolean): QueuedJob | undefined {
    for (let left = line.size; left > 0; left -= 1) {
      const job = line.shift();
      if (job === undefined) return undefined;
      job.inLine = false;
      if (mayStart(job)) return job;
      this.#lineUp(job);
    }
    return undefined;
  }

  /** The running job whose last start is longest ago. It may still stand in a line; that place is only a place. */
  #nextOfRunning(): QueuedJob | undefined {
    return [...this.#runningJobs].find((job) => this.#mayStart(job));
  }

  #mayStart(job: QueuedJob): boolean {
    return job.waiting > 0 && job.running < this.#limits.maxInputsPerJob;
  }
}
