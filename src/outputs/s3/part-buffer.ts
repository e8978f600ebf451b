import type { PartMemory } from './part-memory.ts';

/** The bytes of one part of an object until it is sent, written in any order. */
export class PartBuffer {
  readonly #sizeBytes: number;
  readonly #willBeFilled: boolean;
  readonly #memory: PartMemory;
  #bytes: Buffer = Buffer.alloc(0);
  #writtenBytes = 0;
  #end = 0;

  constructor(sizeBytes: number, willBeFilled: boolean, memory: PartMemory) {
    this.#sizeBytes = sizeBytes;
    this.#willBeFilled = willBeFilled;
    this.#memory = memory;
  }

  /** How many bytes were written. Ranges that are written do not overlap. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** What was written. The memory is the buffer's own. */
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

  /** Most small files are written at once, and need no more than that; what is written on is given room for all. */
  #grow(neededBytes: number): void {
    const isFirst = this.#bytes.length === 0 && !this.#willBeFilled;
    const grown = isFirst ? Buffer.allocUnsafeSlow(neededBytes) : this.#memory.take(this.#sizeBytes);
    grown.set(this.bytes);
    this.#bytes = grown;
  }
}
