import assert from 'node:assert/strict';
import type { ByteSink } from '#bytes/byte-sink.ts';

/** Sink in memory that counts its writes, refuses writes past its size, and fails at a given position. */
export class MemorySink implements ByteSink {
  readonly destination = 'memory';
  readonly bytes: Buffer;
  writeCount = 0;
  /** Writes that have started and not ended. */
  running = 0;
  readonly #faults: { failFrom?: number; failure?: Error };

  constructor(sizeBytes: number, faults: { failFrom?: number; failure?: Error } = {}) {
    this.bytes = Buffer.alloc(sizeBytes);
    this.#faults = faults;
  }

  async write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    this.writeCount += 1;
    this.running += 1;
    await new Promise((resolve) => setImmediate(resolve));
    this.running -= 1;
    signal.throwIfAborted();
    if (position >= (this.#faults.failFrom ?? Number.POSITIVE_INFINITY)) throw this.#faults.failure;
    assert.ok(position + bytes.length <= this.bytes.length, 'a write past the end');
    this.bytes.set(bytes, position);
  }

  seal(): Promise<void> {
    return Promise.resolve();
  }

  commit(): Promise<void> {
    return Promise.resolve();
  }

  discard(): Promise<void> {
    return Promise.resolve();
  }
}
