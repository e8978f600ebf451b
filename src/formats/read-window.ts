import { type ByteSource, readRange } from '#bytes/byte-source.ts';

/** Bytes that one read of headers fetches: a chain of small chunks or frames costs one request, not one each. */
const WINDOW_SIZE_BYTES = 16 * 1024;

/**
 * Reader of headers through a sliding window of bytes. Small forward steps are cheap, also where every read of the
 * source is a network request. `maxSizeBytes` is the window's size while it slides; after a jump, such as over media,
 * it starts small.
 */
export class ReadWindow {
  readonly #source: ByteSource;
  readonly #signal: AbortSignal;
  readonly #maxSizeBytes: number;
  #bytes: Buffer = Buffer.alloc(0);
  #offset = 0;

  constructor(source: ByteSource, signal: AbortSignal, maxSizeBytes = WINDOW_SIZE_BYTES) {
    this.#source = source;
    this.#signal = signal;
    this.#maxSizeBytes = maxSizeBytes;
  }

  /**
   * Reads the bytes `[offset, offset + length)`, which must lie inside the source. They are valid until the next call.
   */
  async read(offset: number, length: number): Promise<Buffer> {
    const buffered = this.buffered(offset, length);
    if (buffered !== null) return buffered;
    await this.#slideTo(offset, length);
    return this.#bytes.subarray(0, length);
  }

  /** Returns those bytes if they are in the window, else null: avoids an `await` for each element of a long chain. */
  buffered(offset: number, length: number): Buffer | null {
    const start = offset - this.#offset;
    return start >= 0 && start + length <= this.#bytes.length ? this.#bytes.subarray(start, start + length) : null;
  }

  async #slideTo(offset: number, length: number): Promise<void> {
    const end = this.#offset + this.#bytes.length;
    const isNear = offset >= this.#offset && offset <= end + this.#maxSizeBytes;
    const ahead = isNear ? this.#maxSizeBytes : WINDOW_SIZE_BYTES;
    const available = this.#source.sizeBytes - offset;
    this.#bytes = await readRange(this.#source, offset, Math.max(length, Math.min(ahead, available)), this.#signal);
    this.#offset = offset;
  }
}
