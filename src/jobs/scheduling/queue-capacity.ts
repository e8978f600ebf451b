import { FairCapacity } from '#concurrency/fair-capacity.ts';
import { AppError } from '#errors/app-error.ts';
import type { QueuedCounts } from '../store/job-store.ts';

/** The inputs of a submission that is being recorded. */
interface Reservation {
  readonly caller: string | null;
  readonly count: number;
}

/** Counts waiting inputs by caller, and bounds their number (`worker.queue_capacity`). */
export class QueueCapacity {
  readonly #limit: number;
  readonly #capacity: FairCapacity;
  readonly #pending = new Set<Reservation>();
  /** The reservations that the running recount may not see in the store; null while there is none. */
  #unseen: Set<Reservation> | null = null;

  /** `callers` returns those that half of the capacity is reserved for. */
  constructor(limit: number, callers: () => readonly string[]) {
    this.#limit = limit;
    this.#capacity = new FairCapacity(limit, callers);
  }

  get waiting(): number {
    return this.#capacity.used;
  }

  /** The callers with waiting inputs, as far as they have names. */
  get callers(): readonly string[] {
    return this.#capacity.users.filter((caller) => caller !== null);
  }

  /**
   * Reserves capacity for the inputs of a submission, to be settled. Throws `QUEUE_FULL`, `CALLER_QUEUE_FULL` where the rest is
   * reserved for others, or `JOB_EXCEEDS_QUEUE` when the caller could never have as many waiting.
   */
  reserve(caller: string | null, count: number): Reservation {
    const refusal = this.#capacity.tryReserve(caller, count);
    if (refusal !== null) {
      const { reason, used, free, limit } = refusal;
      if (reason === 'never-fits')
        throw new AppError('JOB_EXCEEDS_QUEUE', { asked: count, limit }, { field: 'inputs' });
      if (reason === 'caller-limit') throw new AppError('CALLER_QUEUE_FULL', { waiting: used, asked: count, free });
      throw new AppError('QUEUE_FULL', { waiting: this.waiting, asked: count, limit: this.#limit });
    }
    const reservation = { caller, count };
    this.#pending.add(reservation);
    this.#unseen?.add(reservation);
    return reservation;
  }

  /** Ends the recording of a submission, and releases its capacity where nothing was recorded. */
  settle(reservation: Reservation, isRecorded: boolean): void {
    this.#pending.delete(reservation);
    if (isRecorded) return;
    this.#unseen?.delete(reservation);
    this.release(reservation.caller, reservation.count);
  }

  /** Adds inputs that were accepted before, even beyond the limit. */
  add(caller: string | null, count: number): void {
    this.#capacity.add(caller, count);
  }

  /** Releases capacity, never below zero: an input that another node accepted may start here before it was counted. */
  release(caller: string | null, count: number): void {
    this.#capacity.release(caller, count);
  }

  /**
   * Replaces the numbers by those of the whole database, and those of submissions that were being recorded since the query
   * began: what a caller submits side by side would else exceed the limit. Throws what the query throws.
   */
  async recount(query: () => Promise<QueuedCounts>): Promise<void> {
    const unseen = new Set(this.#pending);
    this.#unseen = unseen;
    try {
      this.#capacity.correct(await query());
      for (const { caller, count } of unseen) this.add(caller, count);
    } finally {
      this.#unseen = null;
    }
  }
}
