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
    let block = this.#blocks[this.#block];
    while (block === undefined || block.length - this.#usedBytes < sizeBytes) block = this.#nextBlock(sizeBytes);
    const start = this.#usedBytes;
    this.#usedBytes += Math.ceil(sizeBytes / PAGE_SIZE_BYTES) * PAGE_SIZE_BYTES;
    return block.subarray(start, start + sizeBytes);
  }

  /** Takes all buffers back. */
  reset(): void {
    this.#block = 0;
    this.#usedBytes = 0;
  }

  #nextBlock(sizeBytes: number): Buffer {
    if (this.#block < this.#blocks.length) this.#block += 1;
    this.#usedBytes = 0;
    const block = this.#blocks[this.#block] ?? allocatePages(Math.max(sizeBytes, BLOCK_SIZE_BYTES));
    this.#blocks[this.#block] = block;
    return block;
  }
}
