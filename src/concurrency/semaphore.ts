import assert from 'node:assert/strict';

interface Waiter {
  readonly permits: number;
  readonly grant: () => void;
}

/**
 * Bounds what is used at once by a number of permits: requests, bytes, slots. First in, first out, so that a large request
 * is not starved by small ones. A request for more permits than there are is granted when it has all of them alone. With
 * one permit it is a mutex.
 */
export class Semaphore {
  readonly #capacity: number;
  readonly #waiters: Waiter[] = [];
  #available: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#available = capacity;
  }

  /** Permits that nobody has. */
  get available(): number {
    return this.#available;
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#waiters.length;
  }

  /**
   * Resolves when the permits are granted. The caller gives as many to `release`, whatever happens. Throws the signal's
   * reason when it is aborted before; nothing is to be released then.
   */
  async acquire(permits = 1, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.tryAcquire(permits)) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { permits: this.#countedOf(permits), grant: resolve };
    this.#waiters.push(waiter);
    const giveUp = (): void => {
      const index = this.#waiters.indexOf(waiter);
      if (index === -1) return;
      this.#waiters.splice(index, 1);
      reject(signal?.reason);
      this.#grant();
    };
    signal?.addEventListener('abort', giveUp, { once: true });
    await promise.finally(() => signal?.removeEventListener('abort', giveUp));
  }

  /** Takes the permits if they are free and nobody waits; returns false otherwise. */
  tryAcquire(permits = 1): boolean {
    if (this.#waiters.length > 0 || this.#countedOf(permits) > this.#available) return false;
    this.#available -= this.#countedOf(permits);
    return true;
  }

  /** Returns permits, and grants them to those that wait longest. */
  release(permits = 1): void {
    this.#available += this.#countedOf(permits);
    assert(this.#available <= this.#capacity, 'more permits were released than acquired');
    this.#grant();
  }

  /** Runs a task with the permits, which are released when it settles. */
  async run<T>(task: () => Promise<T>, permits = 1, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    // Starts the task at once where it can.
    if (!this.tryAcquire(permits)) await this.acquire(permits, signal);
    try {
      return await task();
    } finally {
      this.release(permits);
    }
  }

  #countedOf(permits: number): number {
    return Math.min(permits, this.#capacity);
  }

  #grant(): void {
    for (let [next] = this.#waiters; next !== undefined && next.permits <= this.#available; [next] = this.#waiters) {
      this.#waiters.shift();
      this.#available -= next.permits;
      next.grant();
    }
  }
}

interface BackgroundLimits {
  /** Tasks that run at once. */
  readonly maxRunning: number;
  /** Tasks that wait before callers have to. */
  readonly maxWaiting: number;
}

/** Runs tasks behind their callers, a bounded number at once and the others in order of arrival. */
export class BackgroundTasks {
  readonly #running: Semaphore;
  readonly #accepted: Semaphore;
  readonly #maxAccepted: number;

  constructor({ maxRunning, maxWaiting }: BackgroundLimits) {
    this.#maxAccepted = maxRunning + maxWaiting;
    this.#running = new Semaphore(maxRunning);
    this.#accepted = new Semaphore(this.#maxAccepted);
  }

  /** Accepts a task, which must never reject. Resolves at once unless too many tasks wait. */
  async start(task: () => Promise<void>): Promise<void> {
    await this.#accepted.acquire();
    void this.#running.run(task).finally(() => this.#accepted.release());
  }

  /** Resolves when every task that was started has settled. */
  async settled(): Promise<void> {
    await this.#accepted.acquire(this.#maxAccepted);
    this.#accepted.release(this.#maxAccepted);
  }
}
