/** A check of a request's assertions as the queue sees it. */
export interface QueuedCheck {
  readonly isSmall: boolean;
  /** Batches that are left to do. */
  readonly remainingCount: number;
}

/**
 * Checks that wait for their next batch. By turns, the one with the fewest batches left is next, and the one that came
 * first: small checks overtake large ones, and large ones get on whatever comes.
 */
export class CheckQueue<Check extends QueuedCheck> {
  /** With the order of arrival, which a check keeps from batch to batch. */
  readonly #waiting: { readonly check: Check; readonly arrival: number }[] = [];
  readonly #arrivals = new WeakMap<Check, number>();
  #arrivalCount = 0;
  #isTurnOfOldest = false;

  get hasSmall(): boolean {
    return this.#waiting.some(({ check }) => check.isSmall);
  }

  /** Adds a check: a new one, or one of which a batch is done. */
  add(check: Check): void {
    const arrival = this.#arrivals.get(check) ?? this.#arrivalCount++;
    this.#arrivals.set(check, arrival);
    const at = this.#waiting.findIndex((other) => other.arrival > arrival);
    this.#waiting.splice(at === -1 ? this.#waiting.length : at, 0, { check, arrival });
  }

  remove(check: Check): void {
    const at = this.#waiting.findIndex((waiting) => waiting.check === check);
    if (at !== -1) this.#waiting.splice(at, 1);
  }

  /** Takes the next check out; undefined where none waits. */
  next(): Check | undefined {
    const isTurnOfOldest = this.#isTurnOfOldest;
    this.#isTurnOfOldest = !isTurnOfOldest;
    return this.#take(isTurnOfOldest ? this.#waiting[0]?.check : this.#shortest());
  }

  /** Takes the small check out that came first; undefined where none waits. */
  nextSmall(): Check | undefined {
    return this.#take(this.#waiting.find(({ check }) => check.isSmall)?.check);
  }

  #shortest(): Check | undefined {
    let shortest: Check | undefined;
    for (const { check } of this.#waiting) {
      if (shortest === undefined || check.remainingCount < shortest.remainingCount) shortest = check;
    }
    return shortest;
  }

  #take(check: Check | undefined): Check | undefined {
    if (check !== undefined) this.remove(check);
    return check;
  }
}
