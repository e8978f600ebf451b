/** A reservation that was refused. */
interface Refusal {
  /**
   * `never-fits`: it exceeds `limit`, whatever is released. `caller-limit`: the rest is reserved for other callers.
   * `full`: nothing is reserved for others.
   */
  readonly reason: 'never-fits' | 'caller-limit' | 'full';
  /** The units that the caller has. */
  readonly used: number;
  /** The units that the caller could reserve now. */
  readonly free: number;
  /** The units that the caller could have while no other has any of the common half. */
  readonly limit: number;
}

/**
 * A capacity that no caller can take from the others: half of it is reserved for the named callers, evenly, and the other
 * half is common. A caller takes from its own part first. Callers without a name, and those that are not listed, have the
 * common half alone. Where no callers are listed, all of it is common.
 */
export class FairCapacity {
  readonly #limit: number;
  readonly #callersNow: () => Iterable<string>;
  #callers: ReadonlySet<string | null> = new Set();
  /** The units that are reserved for each caller. */
  #part = 0;
  #used = new Map<string | null, number>();

  /** `callers` returns those that units are reserved for. */
  constructor(limit: number, callers: () => Iterable<string>) {
    this.#limit = limit;
    this.#callersNow = callers;
  }

  /** The units that all callers have together. */
  get used(): number {
    return [...this.#used.values()].reduce((sum, used) => sum + used, 0);
  }

  /** The callers that have units. */
  get users(): readonly (string | null)[] {
    return [...this.#used.keys()];
  }

  /** Reserves units for a caller; returns the reason where they do not fit, and null otherwise. */
  tryReserve(caller: string | null, count: number): Refusal | null {
    this.#callers = new Set(this.#callersNow());
    this.#part = Math.floor(this.#limit / 2 / Math.max(1, this.#callers.size));
    const used = this.#used.get(caller) ?? 0;
    const part = this.#partOf(caller);
    const common = this.#limit - this.#part * this.#callers.size;
    const taken = [...this.#used.keys()].reduce((sum, one) => sum + this.#takenFromCommon(one), 0);
    const free = Math.max(0, part - used) + Math.max(0, common - taken);
    const limit = part + common;
    if (count > limit) return { reason: 'never-fits', used, free, limit };
    if (count > free) return { reason: this.#hasReserveBeside(caller) ? 'caller-limit' : 'full', used, free, limit };
    this.add(caller, count);
    return null;
  }

  /** Adds units that a caller has had before, even beyond the limit. */
  add(caller: string | null, count: number): void {
    this.#used.set(caller, (this.#used.get(caller) ?? 0) + count);
  }

  /** Releases units of a caller, never below zero: they may be released here before they were counted. */
  release(caller: string | null, count: number): void {
    const left = (this.#used.get(caller) ?? 0) - count;
    if (left > 0) this.#used.set(caller, left);
    else this.#used.delete(caller);
  }

  /** Replaces the units of all callers. */
  correct(used: ReadonlyMap<string | null, number>): void {
    this.#used = new Map(used);
  }

  #partOf(caller: string | null): number {
    return this.#callers.has(caller) ? this.#part : 0;
  }

  #takenFromCommon(caller: string | null): number {
    return Math.max(0, (this.#used.get(caller) ?? 0) - this.#partOf(caller));
  }

  /** Returns true where another caller has not used its part. */
  #hasReserveBeside(caller: string | null): boolean {
    return [...this.#callers].some((one) => one !== caller && (this.#used.get(one) ?? 0) < this.#part);
  }
}
