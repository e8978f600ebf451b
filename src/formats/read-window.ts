import { type ByteSource, readRange } from '#bytes/byte-source.ts';

/** How many bytes one read of headers fetches: a chain of small chunks or frames costs one request, not one each. */
const WINDOW_SIZE_BYTES = 16 * 1024;

/**
 * Reads headers of a source through one window of bytes that slides along. Asking forwards in small steps is cheap,
 * also where every read is a request over the network. `largestSizeBytes` is the window's size while it slides; where
 * it has to jump, over media that nobody asks for, it starts small.
 */
export class ReadWindow {
  readonly #source: ByteSource;
  readonly #signal: AbortSignal;
  readonly #largestSizeBytes: number;
  #bytes: Buffer = Buffer.alloc(0);
  #offset = 0;

  constructor(source: ByteSource, signal: AbortSignal, largestSizeBytes = WINDOW_SIZE_BYTES) {
    this.#source = source;
    this.#signal = signal;
    this.#largestSizeBytes = largestSizeBytes;
  }

  /** The bytes `[offset, offset + length)`, which must lie inside the source. Valid until the next call. */
  async read(offset: number, length: number): Promise<Buffer> {
    const held = this.held(offset, length);
    if (held !== null) return held;
    await this.#slideTo(offset, length);
    return this.#bytes.subarray(0, length);
  }

  /** Those bytes if they are at hand: for chains so long that waiting for each link would be felt. */
  held(offset: number, length: number): Buffer | null {
    const start = offset - this.#offset;
    return start >= 0 && start + length <= this.#bytes.length ? this.#bytes.subarray(start, start + length) : null;
  }

  async #slideTo(offset: number, length: number): Promise<void> {
    const end = this.#offset + this.#bytes.length;
    const isNear = offset >= this.#offset && offset <= end + this.#largestSizeBytes;
    const ahead = isNear ? this.#largestSizeBytes : WINDOW_SIZE_BYTES;
    const available = this.#source.sizeBytes - offset;
    this.#bytes = await readRange(this.#source, offset, Math.max(length, Math.min(ahead, available)), this.#signal);
    this.#offset = offset;
  }
}
