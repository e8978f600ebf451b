import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';

/**
 * Open file of this process. Opens and closes synchronously: files are read and written in workers, where nothing else
 * waits for the thread. For 20,000 fragments, asynchronous opening and the garbage collection of file handles took as
 * long as all other work.
 */
export class Descriptor {
  readonly #number: number;
  /**
   * Number of calls running on the thread pool. Until they finish, the descriptor must not be reused for another file.
   */
  #running = 0;
  #closing: PromiseWithResolvers<void> | null = null;
  #closed = false;

  private constructor(number: number) {
    this.#number = number;
  }

  /** Opens a file. Throws system errors unchanged. */
  static open(path: string, flags: string | number): Descriptor {
    return new Descriptor(openSync(path, flags));
  }

  /** The descriptor, for a synchronous call. */
  get number(): number {
    assert(this.#closing === null, 'a file is not used after it was closed');
    return this.#number;
  }

  /** Runs an asynchronous call, until which the file stays open. */
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

  /** Closes the file when the running calls have finished. Safe to call again. */
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
