/** What tells the time of leases, in milliseconds since any moment; it never goes back. */
export type LeaseClock = () => number;

/**
 * A clock that runs as fast as the faster of two: the monotonic one stands still while a machine is suspended, and the
 * one on the wall may be set back. At worst a lease seems over early, and is renewed.
 */
export function leaseClock(): LeaseClock {
  const [monotonicStart, wallStart] = [performance.now(), Date.now()];
  let latest = 0;
  return () => {
    latest = Math.max(latest, performance.now() - monotonicStart, Date.now() - wallStart);
    return latest;
  };
}

/**
 * How long an input is this node's without asking. Timed here, from before the database was asked, so that it is over
 * sooner than the database thinks.
 */
export class Lease {
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

  /** Whether it holds for so long from now on. */
  covers(boundMs: number): boolean {
    return this.#clock() + boundMs <= this.#endsAtMs;
  }

  /** Settles when it is renewed the next time. */
  get renewed(): Promise<void> {
    return this.#renewed.promise;
  }
}
