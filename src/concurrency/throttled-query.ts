/** Limits queries to a fiftieth of the time, as long as the pause stays below its bound. */
const PAUSE_PER_COST = 50;

/** Bounds the age of what callers see: a query also takes long when the whole machine is slow, and then every one does. */
const MAX_PAUSE_MS = 5_000;

/** Queries that take less are not throttled: callers have pauses of their own. */
const FREE_COST_MS = 5;

interface Seen<Value> {
  readonly value: Value;
  /** By a monotonic clock. */
  readonly nextAtMs: number;
}

/**
 * Throttles a query whose cost grows with the data, such as a count that a database makes row by row: the longer a query
 * took, the longer until the next one, up to `MAX_PAUSE_MS`.
 */
export class ThrottledQuery<Value> {
  readonly #look: () => Promise<Value>;
  readonly #now: () => number;
  #seen: Seen<Value> | null = null;
  #looking: Promise<Value> | null = null;

  /** `now`: milliseconds by a monotonic clock. */
  constructor(look: () => Promise<Value>, now: () => number = () => performance.now()) {
    this.#look = look;
    this.#now = now;
  }

  /** Returns the current result, or the last one when it is too early to query again. Throws what the query throws. */
  async value(): Promise<Value> {
    return this.#seen === null || this.#isDue() ? this.#lookNow() : this.#seen.value;
  }

  /** Returns the current result; undefined when it is too early to query again. Throws what the query throws. */
  async freshValue(): Promise<Value | undefined> {
    return this.#isDue() ? this.#lookNow() : undefined;
  }

  #isDue(): boolean {
    return this.#seen === null || this.#now() >= this.#seen.nextAtMs;
  }

  /** Shares a running query among its callers. */
  #lookNow(): Promise<Value> {
    this.#looking ??= this.#timed().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #timed(): Promise<Value> {
    const startedAtMs = this.#now();
    const value = await this.#look();
    const endedAtMs = this.#now();
    const costMs = endedAtMs - startedAtMs;
    const pauseMs = costMs < FREE_COST_MS ? 0 : Math.min(costMs * PAUSE_PER_COST, MAX_PAUSE_MS);
    this.#seen = { value, nextAtMs: endedAtMs + pauseMs };
    return value;
  }
}
