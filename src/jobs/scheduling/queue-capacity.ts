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
