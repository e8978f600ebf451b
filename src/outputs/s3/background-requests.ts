import type { Semaphore } from '#concurrency/semaphore.ts';

/** Bounds how many requests, with how many bytes in all, are sent at once. One request of any size is always allowed. */
export interface RequestLimit {
  readonly requests: Semaphore;
  readonly bytes: Semaphore;
}

/** Requests that run in the background. None rejects: the first failure is kept for whoever goes on. */
export class BackgroundRequests {
  readonly #limit: RequestLimit;
  readonly #failed: (error: unknown) => void;
  readonly #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | null = null;

  constructor(limit: RequestLimit, failed: (error: unknown) => void = () => undefined) {
    this.#limit = limit;
    this.#failed = failed;
  }

  /** Starts a request with so many bytes, first in, first out; waits only while too many requests run. */
  async start(sizeBytes: number, request: () => Promise<void>): Promise<void> {
    const { requests, bytes } = this.#limit;
    await requests.acquire();
    await bytes.acquire(sizeBytes);
    const running = this.run(request).finally(() => {
      bytes.release(sizeBytes);
      requests.release();
      this.#running.delete(running);
    });
    this.#running.add(running);
  }

  /** Runs a request outside of the limit, unless one before failed. Never rejects. */
  async run(request: () => Promise<void>): Promise<void> {
    if (this.#failure !== null) return;
    try {
      await request();
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#failed(error);
  }

  /** Resolves when every request that was started has settled. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Throws where the signal is aborted, and the first failure. */
  throwIfFailed(signal: AbortSignal): void {
    signal.throwIfAborted();
    if (this.#failure !== null) throw this.#failure.error;
  }
}
