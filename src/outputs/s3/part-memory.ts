import { freeMemory } from '#bytes/free-memory.ts';

/** Buffers that are kept for the next parts: as many as are sent at once, as a rule. Small ones are of all sizes. */
const MAX_SPARE_BUFFERS = 4;
const SMALLEST_SPARE_BYTES = 1024 * 1024;

/** Memory for the parts of one output, used again and again: the collector lets go of large buffers late. */
export class PartMemory {
  readonly #spare: Buffer[] = [];

  take(sizeBytes: number): Buffer {
    const index = this.#spare.findIndex(({ length }) => length === sizeBytes);
    const [spare] = index === -1 ? [] : this.#spare.splice(index, 1);
    return spare ?? Buffer.allocUnsafeSlow(sizeBytes);
  }

  /** Gives back what nobody reads any more, the whole of a buffer or its beginning. */
  giveBack(bytes: Buffer): void {
    const whole = Buffer.from(bytes.buffer);
    if (whole.length < SMALLEST_SPARE_BYTES) return freeMemory(whole);
    this.#spare.push(whole);
    if (this.#spare.length > MAX_SPARE_BUFFERS) freeMemory(this.#spare.shift() as Buffer);
  }
}
