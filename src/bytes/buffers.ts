/**
 * Buffers for media, in memory that the kernel can read and write directly. Such memory starts on a page, and the
 * buffers are used again and again, because the garbage collector frees the memory of buffers late. Together with
 * `outputs/local/durable-file.ts`, a film of 6 GB is signed in 5.1 s instead of 15.6 s (medians of 7 pairs).
 */
import { Semaphore } from '#concurrency/semaphore.ts';

/**
 * Alignment that direct I/O requires of memory, of positions in files and of sizes; no common disk has larger blocks.
 */
export const PAGE_SIZE_BYTES = 4096;

/**
 * Memory of all buffers that are acquired at the same time in this process: enough to read ahead and write behind on
 * two cores. Fragments that are signed concurrently share it.
 */
const POOL_CAPACITY_BYTES = 16 * 1024 * 1024;
/** Smallest buffer of the pool. Sizes are powers of two, so that a buffer also fits the next file. */
const MIN_BUFFER_SIZE_BYTES = 16 * 1024;
/** Size of the blocks of an arena; a larger buffer gets a block of its own. */
const ARENA_BLOCK_SIZE_BYTES = 1024 * 1024;

/**
 * Returns a zeroed buffer that starts on a page of memory. V8 maps the memory of resizable ArrayBuffers itself, page by
 * page; other memory comes from the allocator at any address. The buffer is never resized.
 */
export function allocatePages(sizeBytes: number): Buffer {
  return Buffer.from(new ArrayBuffer(sizeBytes, { maxByteLength: sizeBytes }), 0, sizeBytes);
}

/** Tells whether bytes lie in memory from `allocatePages`. */
export function isPageMemory({ buffer }: Uint8Array): boolean {
  return buffer instanceof ArrayBuffer && buffer.resizable;
}

/** Returns the offset in bytes of a position in memory or in a file within its page. */
export function offsetInPage(position: number): number {
  return position % PAGE_SIZE_BYTES;
}

/** Pool of buffers with bounded memory. */
export class BufferPool {
  /** Permits are bytes. */
  readonly #capacity: Semaphore;
  /** Released buffers, the most recent last. */
  readonly #spare: Buffer[] = [];
  #spareBytes = 0;

  constructor(capacityBytes = POOL_CAPACITY_BYTES) {
    this.#capacity = new Semaphore(capacityBytes);
  }

  /**
   * Returns a buffer of at least the size, first come, first served, as soon as there is capacity for it; one larger
   * than the pool as soon as no other is acquired. Throws the signal's reason. A caller that waits for a buffer must
   * not need it to release another one.
   */
  async acquire(neededBytes: number, signal: AbortSignal): Promise<Buffer> {
    const sizeBytes = bufferSizeOf(neededBytes);
    await this.#capacity.acquire(sizeBytes, signal);
    return this.#spareBufferOf(sizeBytes) ?? this.#freshBufferOf(sizeBytes);
  }

  /** Returns a buffer to the pool. Nothing may read or write it any more. */
  release(buffer: Buffer): void {
    this.#spare.push(buffer);
    this.#spareBytes += buffer.length;
    this.discard(buffer);
  }

  /**
   * Returns the capacity of a buffer, which is left to the garbage collector: an aborted read may still write into it.
   */
  discard({ length }: Buffer): void {
    this.#capacity.release(length);
  }

  #spareBufferOf(sizeBytes: number): Buffer | undefined {
    const index = this.#spare.findLastIndex(({ length }) => length === sizeBytes);
    if (index === -1) return undefined;
    this.#spareBytes -= sizeBytes;
    return this.#spare.splice(index, 1)[0];
  }

  /** Allocates a buffer, and frees spare buffers of other sizes for it. */
  #freshBufferOf(sizeBytes: number): Buffer {
    while (this.#spareBytes > this.#capacity.available) {
      const oldest = this.#spare.shift();
      if (oldest === undefined) break;
      this.#spareBytes -= oldest.length;
    }
    return allocatePages(sizeBytes);
  }
}

function bufferSizeOf(neededBytes: number): number {
  return Math.max(MIN_BUFFER_SIZE_BYTES, 2 ** Math.ceil(Math.log2(Math.max(neededBytes, 1))));
}

/** The pool of this process. */
export const bufferPool = new BufferPool();

/**
 * Arena of small buffers that are released together: `reset` makes their memory available again. Without it, 20,000
 * small buffers took 60 MB.
 */
export class BufferArena {
  readonly #blocks: Buffer[] = [];
  /** Index of the block in use, and the number of its bytes that are allocated. */
  #block = 0;
  #usedBytes = 0;

  /** Returns a buffer that starts on a page of memory, with arbitrary content. Valid until `reset`. */
  allocate(sizeBytes: number): Buffer {
    let block = this.#blocks[this.#block];
    while (block === undefined || block.length - this.#usedBytes < sizeBytes) block = this.#nextBlock(sizeBytes);
    const start = this.#usedBytes;
    this.#usedBytes += Math.ceil(sizeBytes / PAGE_SIZE_BYTES) * PAGE_SIZE_BYTES;
    return block.subarray(start, start + sizeBytes);
  }

  /** Releases all buffers. */
  reset(): void {
    this.#block = 0;
    this.#usedBytes = 0;
  }

  #nextBlock(sizeBytes: number): Buffer {
    if (this.#block < this.#blocks.length) this.#block += 1;
    this.#usedBytes = 0;
    const block = this.#blocks[this.#block] ?? allocatePages(Math.max(sizeBytes, ARENA_BLOCK_SIZE_BYTES));
    this.#blocks[this.#block] = block;
    return block;
  }
}

/**
 * Frees the memory of bytes that are not read any more, where they are the only view of it. The garbage collector frees
 * it late and at great cost: without this, reading from S3 took almost twice the processor time, and 25 MB more.
 */
export function freeMemory({ buffer, length }: Uint8Array): void {
  const isOnlyView = buffer instanceof ArrayBuffer && length > 0 && length === buffer.byteLength;
  if (isOnlyView) buffer.transfer(0);
}
