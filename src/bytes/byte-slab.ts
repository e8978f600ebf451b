import { allocatePages, PAGE_SIZE_BYTES } from './page-memory.ts';

/** Memory comes in blocks of so many bytes, or of what is asked for where that is more. */
const BLOCK_SIZE_BYTES = 1024 * 1024;

/**
 * Buffers that are all done with at the same time. Their memory is used again after `reset`: the collector is late with
 * the memory of buffers, and 20,000 small ones took 60 MB.
 */
export class ByteSlab {
  readonly #blocks: Buffer[] = [];
  /** The block that is being given away, and how much of it has been. */
  #block = 0;
  #usedBytes = 0;

  /** A buffer of that size that begins on a page of memory, of whatever content. Valid until `reset`. */
  take(sizeBytes: number): Buffer {
    while ((this.#blocks[this.#block]?.length ?? 0) - this.#usedBytes < sizeBytes) this.#nextBlock(sizeBytes);
    const start = this.#usedBytes;
    this.#usedBytes += Math.ceil(sizeBytes / PAGE_SIZE_BYTES) * PAGE_SIZE_BYTES;
    return (this.#blocks[this.#block] as Buffer).subarray(start, start + sizeBytes);
  }

  /** Takes all buffers back. */
  reset(): void {
    this.#block = 0;
    this.#usedBytes = 0;
  }

  #nextBlock(sizeBytes: number): void {
    if (this.#block < this.#blocks.length) this.#block += 1;
    this.#usedBytes = 0;
    if (this.#block === this.#blocks.length) {
      this.#blocks.push(allocatePages(Math.max(sizeBytes, BLOCK_SIZE_BYTES)));
    }
  }
}
