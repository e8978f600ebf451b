/** A part is given so much at first, in bytes, where it is not known whether it will be filled. */
const FIRST_CAPACITY_BYTES = 64 * 1024;

/** The bytes of one part of an object until it is sent, written in any order. */
export class PartBuffer {
  #bytes: Buffer;
  #writtenBytes = 0;
  #end = 0;

  /** `spare` is memory that is used again, of any size. */
  constructor(sizeBytes: number, isFilled: boolean, spare?: Buffer) {
    const capacity = isFilled ? sizeBytes : Math.min(sizeBytes, FIRST_CAPACITY_BYTES);
    this.#bytes = spare !== undefined && spare.length >= capacity ? spare : Buffer.allocUnsafeSlow(capacity);
  }

  /** How many bytes were written. Ranges that are written do not overlap. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** What was written. The memory is the buffer's own. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#end);
  }

  /** All memory of the buffer, to be used again once nobody reads its bytes any more. */
  get memory(): Buffer {
    return this.#bytes;
  }

  write(bytes: Uint8Array, at: number): void {
    const end = at + bytes.length;
    if (end > this.#bytes.length) this.#grow(end);
    this.#bytes.set(bytes, at);
    this.#writtenBytes += bytes.length;
    this.#end = Math.max(this.#end, end);
  }

  #grow(neededBytes: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(neededBytes, this.#bytes.length * 2));
    grown.set(this.bytes);
    this.#bytes = grown;
  }
}
