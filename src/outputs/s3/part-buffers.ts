import { freeMemory } from '#bytes/buffers.ts';

/** The bytes of one part of an object until it is sent, written in any order. */
export class PartBuffer {
  readonly #sizeBytes: number;
  readonly #willBeFilled: boolean;
  readonly #memory: PartBufferPool;
  #bytes: Buffer = Buffer.alloc(0);
  #writtenBytes = 0;
  #end = 0;

  constructor(sizeBytes: number, willBeFilled: boolean, memory: PartBufferPool) {
    this.#sizeBytes = sizeBytes;
    this.#willBeFilled = willBeFilled;
    this.#memory = memory;
  }

  /** Number of bytes written. Written ranges do not overlap. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** The written bytes, as a view of the buffer's own memory. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#end);
  }

  write(bytes: Uint8Array, at: number): void {
    const end = at + bytes.length;
    if (end > this.#bytes.length) this.#grow(end);
    this.#bytes.set(bytes, at);
    this.#writtenBytes += bytes.length;
    this.#end = Math.max(this.#end, end);
  }

  /** Allocates for the first write only what it needs, which is all of most small files, and for later writes the whole part. */
  #grow(neededBytes: number): void {
    const isFirst = this.#bytes.length === 0 && !this.#willBeFilled;
    const grown = isFirst ? Buffer.allocUnsafeSlow(neededBytes) : this.#memory.acquire(this.#sizeBytes);
    grown.set(this.bytes);
    this.#bytes = grown;
  }
}

/** Buffers kept for the next parts: usually as many as are sent at once. Smaller ones, of all sizes, are freed. */
const MAX_SPARE_BUFFERS = 4;
const MIN_SPARE_BYTES = 1024 * 1024;

/** Memory for the parts of one output, used again and again: the garbage collector frees large buffers late. */
export class PartBufferPool {
  readonly #spare: Buffer[] = [];

  acquire(sizeBytes: number): Buffer {
    const index = this.#spare.findIndex(({ length }) => length === sizeBytes);
    const [spare] = index === -1 ? [] : this.#spare.splice(index, 1);
    return spare ?? Buffer.allocUnsafeSlow(sizeBytes);
  }

  /** Returns a buffer to the pool, given the whole of it or its start. */
  release(bytes: Buffer): void {
    const whole = Buffer.from(bytes.buffer);
    if (whole.length < MIN_SPARE_BYTES) return freeMemory(whole);
    this.#spare.push(whole);
    if (this.#spare.length > MAX_SPARE_BUFFERS) freeMemory(this.#spare.shift() ?? whole);
  }
}
