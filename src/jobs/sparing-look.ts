/** Of the time, so much is spent looking at most: a fiftieth. What takes a millisecond is looked at as often as asked. */
const PAUSE_PER_COST = 50;

/** Looks that cost less are free: whatever asks has pauses of its own. */
const FREE_COST_MS = 5;

interface Seen<Value> {
  readonly value: Value;
  /** By a clock that never goes back. */
  readonly nextAtMs: number;
}

/**
 * Looks at something that may cost more the more there is, such as a count of all that waits, which a database makes row by
 * row: the longer a look took, the longer until the next one.
 */
export class SparingLook<Value> {
  readonly #look: () => Promise<Value>;
  readonly #now: () => number;
  #seen: Seen<Value> | null = null;
  #looking: Promise<Value> | null = null;

  /** `now`: milliseconds by a clock that never goes back. */
  constructor(look: () => Promise<Value>, now: () => number = () => performance.now()) {
    this.#look = look;
    this.#now = now;
  }

  /** What is seen now, or was seen a while ago where it is too early to look again. Rejects as the look does. */
  async value(): Promise<Value> {
    return this.#isDue() ? this.#lookNow() : (this.#seen as Seen<Value>).value;
  }

  /** What is seen now; undefined where it is too early to look again. Rejects as the look does. */
  async newValue(): Promise<Value | undefined> {
    return this.#isDue() ? this.#lookNow() : undefined;
  }

  #isDue(): boolean {
    return this.#seen === null || this.#now() >= this.#seen.nextAtMs;
  }

  /** Whoever asks while somebody looks sees the same. */
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
    const pauseMs = costMs < FREE_COST_MS ? 0 : costMs * PAUSE_PER_COST;
    this.#seen = { value, nextAtMs: endedAtMs + pauseMs };
    return value;
  }
}
