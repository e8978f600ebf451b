import type { ByteSource } from '#bytes/byte-source.ts';

/** A source in memory that counts its reads, and fails where it is told to. */
export class MemorySource implements ByteSource {
  readonly name = 'memory.bin';
  readonly sizeBytes: number;
  readCount = 0;
  bytesRead = 0;
  /** Reads that have started and not ended. */
  running = 0;
  readonly #content: Buffer;
  readonly #faults: { failFrom?: number; failure?: Error; changed?: Error };

  constructor(content: Buffer, faults: { failFrom?: number; failure?: Error; changed?: Error } = {}) {
    this.#content = content;
    this.#faults = faults;
    this.sizeBytes = content.length;
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    this.readCount += 1;
    this.bytesRead += target.length;
    this.running += 1;
    await new Promise((resolve) => setImmediate(resolve));
    this.running -= 1;
    signal.throwIfAborted();
    if (offset >= (this.#faults.failFrom ?? Number.POSITIVE_INFINITY)) throw this.#faults.failure;
    target.set(this.#content.subarray(offset, offset + target.length));
  }

  async checkUnchanged(): Promise<void> {
    if (this.#faults.changed !== undefined) throw this.#faults.changed;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
