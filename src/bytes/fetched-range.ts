import assert from 'node:assert/strict';

/** Who waits for the bytes up to a position. */
interface Waiter {
  readonly upTo: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A range of a source on its way into memory. Its first bytes can be read while the rest is still coming. */
export class FetchedRange {
  readonly offset: number;
  readonly length: number;
  /** Reads that are at it. While there are any, its buffer must stay. */
  readers = 0;
  /** Grows from use to use, so that what was used longest ago can be told; 0 for what was only fetched ahead. */
  lastUse = 0;
  readonly buffer: Buffer;
  readonly #stop = new AbortController();
  readonly #waiters = new Set<Waiter>();
  #filled: number;
  #failure: { readonly error: unknown } | null = null;

  /** `buffer` has at least `length` bytes, of which the first `filled` are there already. */
  constructor(offset: number, length: number, buffer: Buffer, filled = 0) {
    this.offset = offset;
    this.length = length;
    this.buffer = buffer;
    this.#filled = filled;
  }

  get end(): number {
    return this.offset + this.length;
  }

  /** True until all bytes are there or never will be. */
  get isComing(): boolean {
    return this.#filled < this.length && this.#failure === null;
  }

  get hasFailed(): boolean {
    return this.#failure !== null;
  }

  covers(position: number): boolean {
    return position >= this.offset && position < this.end;
  }

  /** Takes in the bytes that `fetch` streams. Never rejects: who reads the range is told. */
  async fill(fetch: (signal: AbortSignal) => AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const bytes of fetch(this.#stop.signal)) {
        if (this.#failure !== null) return;
        assert(this.#filled + bytes.length <= this.length, 'a fetch streams no more than was asked for');
        this.buffer.set(bytes, this.#filled);
        this.#filled += bytes.length;
        this.#wake();
      }
      assert(this.#filled === this.length || this.#failure !== null, 'a fetch streams all that was asked for');
    } catch (error) {
      this.fail(error);
    }
  }

  /** Copies the bytes from `position` on, which the range covers, as soon as they are there. */
  async copyTo(target: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    const start = position - this.offset;
    if (this.#filled < start + target.length) await this.#untilFilled(start + target.length, signal);
    target.set(this.buffer.subarray(start, start + target.length));
  }

  /** Stops the fetching. Whoever waits is told why. */
  fail(error: unknown): void {
    if (this.#failure !== null) return;
    // When all bytes are there, only the end of the answer is to come, and its connection can be used again after it.
    if (this.isComing) this.#stop.abort(error);
    this.#failure = { error };
    for (const { reject } of this.#waiters) reject(error);
    this.#waiters.clear();
  }

  async #untilFilled(upTo: number, signal: AbortSignal): Promise<void> {
    if (this.#failure !== null) throw this.#failure.error;
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { upTo, resolve, reject };
    const onAbort = () => reject(signal.reason);
    this.#waiters.add(waiter);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      this.#waiters.delete(waiter);
      signal.removeEventListener('abort', onAbort);
    }
  }

  #wake(): void {
    for (const waiter of this.#waiters) {
      if (waiter.upTo > this.#filled) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
