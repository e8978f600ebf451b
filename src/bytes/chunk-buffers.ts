import { allocatePages } from './page-memory.ts';

/**
 * Bytes of all walks of a process that are in flight, together: enough to read ahead and write behind on two cores. The
 * fragments that are signed side by side share them, however large they are.
 */
const BUDGET_BYTES = 16 * 1024 * 1024;

/** Sizes are powers of two from here on, so that a buffer serves the next walk too, whose file has another size. */
const SMALLEST_BUFFER_BYTES = 16 * 1024;

interface Waiting {
  readonly sizeBytes: number;
  readonly granted: () => void;
}

/**
 * The buffers that chunks pass through, in bounded memory. They are used again and again: fresh ones are let go of late,
 * because the garbage collector sees little of what they hold.
 */
export class ChunkBuffers {
  readonly #budgetBytes: number;
  /** Buffers that nobody uses, the last one in at the end. */
  readonly #spare: Buffer[] = [];
  /** First come, first served, so that a large one is not passed over for ever. */
  readonly #waiting: Waiting[] = [];
  #takenBytes = 0;
  #spareBytes = 0;

  constructor(budgetBytes = BUDGET_BYTES) {
    this.#budgetBytes = budgetBytes;
  }

  /**
   * A buffer of at least that size, as soon as it fits into the budget; a larger one than the budget as soon as nothing
   * else is taken. Rejects with the signal's reason. What the caller has taken already must go back without this one.
   */
  async take(neededBytes: number, signal: AbortSignal): Promise<Buffer> {
    signal.throwIfAborted();
    const sizeBytes = bufferSizeOf(neededBytes);
    if (this.#waiting.length > 0 || !this.#fits(sizeBytes)) await this.#wait(sizeBytes, signal);
    else this.#takenBytes += sizeBytes;
    return this.#bufferOf(sizeBytes);
  }

  /** Takes back a buffer that nothing reads or writes any more. */
  giveBack(buffer: Buffer): void {
    this.#spare.push(buffer);
    this.#spareBytes += buffer.length;
    this.forgo(buffer);
  }

  /** Takes note that a buffer is left to the garbage collector: something that was given up may yet write into it. */
  forgo({ length }: Buffer): void {
    this.#takenBytes -= length;
    this.#grant();
  }

  #fits(sizeBytes: number): boolean {
    return this.#takenBytes === 0 || this.#takenBytes + sizeBytes <= this.#budgetBytes;
  }

  async #wait(sizeBytes: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { sizeBytes, granted: resolve };
    this.#waiting.push(waiting);
    const giveUp = () => {
      const index = this.#waiting.indexOf(waiting);
      if (index === -1) return;
      this.#waiting.splice(index, 1);
      reject(signal.reason);
      this.#grant();
    };
    signal.addEventListener('abort', giveUp, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', giveUp));
  }

  #grant(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.sizeBytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#takenBytes += next.sizeBytes;
      next.granted();
    }
  }

  /** Spare buffers of other sizes make room for a fresh one. */
  #bufferOf(sizeBytes: number): Buffer {
    const index = this.#spare.findLastIndex(({ length }) => length === sizeBytes);
    const [spare] = index === -1 ? [] : this.#spare.splice(index, 1);
    if (spare !== undefined) {
      this.#spareBytes -= sizeBytes;
      return spare;
    }
    while (this.#takenBytes + this.#spareBytes > this.#budgetBytes) {
      const oldest = this.#spare.shift();
      if (oldest === undefined) break;
      this.#spareBytes -= oldest.length;
    }
    return allocatePages(sizeBytes);
  }
}

function bufferSizeOf(neededBytes: number): number {
  return Math.max(SMALLEST_BUFFER_BYTES, 2 ** Math.ceil(Math.log2(Math.max(neededBytes, 1))));
}

/** Those of this process. */
export const chunkBuffers = new ChunkBuffers();
