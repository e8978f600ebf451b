import { AppError } from '#errors/app-error.ts';

/** How many inputs wait, and whether more may (`worker.queue_capacity`). */
export class QueueRoom {
  readonly #capacity: number;
  #waiting = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Throws QUEUE_FULL, or JOB_EXCEEDS_QUEUE where they could never be taken. */
  take(count: number): void {
    const limit = this.#capacity;
    if (count > limit) throw new AppError('JOB_EXCEEDS_QUEUE', { asked: count, limit }, { field: 'inputs' });
    if (this.#waiting + count > limit) {
      throw new AppError('QUEUE_FULL', { waiting: this.#waiting, asked: count, limit });
    }
    this.#waiting += count;
  }

  /** Adds inputs whatever room there is: they were accepted. */
  add(count: number): void {
    this.#waiting += count;
  }

  /** Never below none: what another node took in may start here before it was counted. */
  giveBack(count: number): void {
    this.#waiting = Math.max(0, this.#waiting - count);
  }

  /** Others take and give back too: so many wait, by a count of all. */
  correct(waiting: number): void {
    this.#waiting = waiting;
  }
}
