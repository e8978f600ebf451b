import { AppError } from '#errors/app-error.ts';

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

  /** Throws `QUEUE_FULL`, or `JOB_EXCEEDS_QUEUE` when so many inputs could never wait. */
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

/** Inputs that run beyond the regular number at most, each in a worker that is started for it. */
export const MAX_EXTRA_SLOTS = 2;

/** An extra slot is offered when all slots are occupied and none was freed for this long. */
const STALL_TIMEOUT_MS = 1_000;

/**
 * Says when one more input may run than there are slots: inputs wait, and those that run have all held their slots for
 * long. Who asks gives the extra slot only to a job that has nothing running, so that inputs that take long, or never end,
 * do not hold up everybody else.
 */
export class ExtraSlots {
  readonly #offer: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** `offer` is called when an extra input may start; it calls `await` again where more inputs wait. */
  constructor(offer: () => void) {
    this.#offer = offer;
  }

  /** To be called when inputs may wait and every slot is taken. Calling it again changes nothing. */
  await(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#offer();
    }, STALL_TIMEOUT_MS);
  }

  /** To be called when a slot is freed: the others may follow. */
  freed(): void {
    this.#timer?.refresh();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
