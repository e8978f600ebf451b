import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';

/**
 * An open file of this process. Files are opened and closed at once, on the thread that asks: they are read and written
 * in workers, where nobody else waits for the thread, and for 20,000 fragments the trips through the pool of threads and
 * the collecting of file handles took as long as the rest of the work.
 */
export class Descriptor {
  readonly #number: number;
  /** Calls that the pool of threads is at. Until they end, the number must not become another file's. */
  #running = 0;
  #closing: PromiseWithResolvers<void> | null = null;
  #closed = false;

  private constructor(number: number) {
    this.#number = number;
  }

  /** Throws the system's errors as they are. */
  static open(path: string, flags: string | number): Descriptor {
    return new Descriptor(openSync(path, flags));
  }

  /** For a call that is made at once. */
  get number(): number {
    assert(this.#closing === null, 'a file is not used after it was closed');
    return this.#number;
  }

  /** Makes a call that goes on behind. */
  async use<Result>(call: (descriptor: number) => Promise<Result>): Promise<Result> {
    const { number } = this;
    this.#running += 1;
    try {
      return await call(number);
    } finally {
      this.#running -= 1;
      this.#closeWhenIdle();
    }
  }

  /** Closes the file when the calls that run have ended. Safe to call again. */
  close(): Promise<void> {
    this.#closing ??= Promise.withResolvers();
    this.#closeWhenIdle();
    return this.#closing.promise;
  }

  #closeWhenIdle(): void {
    if (this.#closing === null || this.#closed || this.#running > 0) return;
    this.#closed = true;
    try {
      closeSync(this.#number);
      this.#closing.resolve();
    } catch (error) {
      this.#closing.reject(error);
    }
  }
}
