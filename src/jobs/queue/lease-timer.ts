/** Returns the time in milliseconds since any moment; it never goes back. */
export type LeaseClock = () => number;

/** The two clocks of `leaseClock` differ by up to this without a cause: the one on the wall counts whole milliseconds. */
const CLOCK_RESOLUTION_MS = 1;

/**
 * Returns a clock that since its last reading ran as fast as the faster of two: the monotonic one stands still while a
 * machine is suspended, and the one on the wall may be set back. At worst a lease seems over early, and is renewed.
 */
export function leaseClock(): LeaseClock {
  let [monotonicMs, wallMs] = [performance.now(), Date.now()];
  let skippedMs = 0;
  return () => {
    const [nowMs, wallNowMs] = [performance.now(), Date.now()];
    const aheadMs = wallNowMs - wallMs - (nowMs - monotonicMs);
    if (aheadMs > CLOCK_RESOLUTION_MS) skippedMs += aheadMs;
    [monotonicMs, wallMs] = [nowMs, wallNowMs];
    return nowMs + skippedMs;
  };
}

/**
 * The time for which an input belongs to this node. Measured here, from before the database was asked, so that it expires
 * earlier than in the database.
 */
export class LeaseTimer {
  readonly #clock: LeaseClock;
  readonly #durationMs: number;
  #endsAtMs: number;
  #renewed = Promise.withResolvers<void>();

  /** `askedAtMs`: the clock's time before the database was asked. */
  constructor(clock: LeaseClock, askedAtMs: number, durationMs: number) {
    this.#clock = clock;
    this.#durationMs = durationMs;
    this.#endsAtMs = askedAtMs + durationMs;
  }

  renew(askedAtMs: number): void {
    this.#endsAtMs = Math.max(this.#endsAtMs, askedAtMs + this.#durationMs);
    this.#renewed.resolve();
    this.#renewed = Promise.withResolvers();
  }

  /** Returns true when it lasts at least this long from now on. */
  covers(boundMs: number): boolean {
    return this.#clock() + boundMs <= this.#endsAtMs;
  }

  /** Settles when it is renewed the next time. */
  get renewed(): Promise<void> {
    return this.#renewed.promise;
  }
}
