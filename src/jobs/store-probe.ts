import type { Log } from './log.ts';

/** Health checks share one write of the store, which is made at most once in this time. */
const PROBE_INTERVAL_MS = 1_000;

/** The store counts as out of reach when a write takes longer. */
const PROBE_TIMEOUT_MS = 5_000;

/** Tells whether the store can be written: by writing to it. A read would succeed on a full disk. */
export class StoreProbe {
  readonly #write: () => Promise<void>;
  readonly #log: Log;
  #works = true;
  #dueAtMs = 0;
  #probing: Promise<boolean> | null = null;
  #writing: Promise<boolean> | null = null;

  constructor(write: () => Promise<void>, log: Log) {
    this.#write = write;
    this.#log = log;
  }

  /** Resolves with whether the store could be written a moment ago. Never rejects. */
  async works(): Promise<boolean> {
    if (performance.now() < this.#dueAtMs) return this.#works;
    this.#probing ??= this.#probe().finally(() => {
      this.#probing = null;
      this.#dueAtMs = performance.now() + PROBE_INTERVAL_MS;
    });
    return this.#probing;
  }

  async #probe(): Promise<boolean> {
    // A write that is under way since an earlier probe is not joined by another one.
    this.#writing ??= this.#tryWrite().finally(() => {
      this.#writing = null;
    });
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), PROBE_TIMEOUT_MS);
    this.#works = await Promise.race([this.#writing, late]);
    clearTimeout(timer);
    return this.#works;
  }

  async #tryWrite(): Promise<boolean> {
    try {
      await this.#write();
      return true;
    } catch (error) {
      if (this.#works) this.#log.error({ err: error }, 'the job store cannot be written');
      return false;
    }
  }
}
