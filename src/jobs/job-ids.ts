import { randomBytes } from 'node:crypto';

/**
 * Makes job identifiers: version 7 UUIDs (RFC 9562 §5.7). They sort by the time they were made, and within one
 * millisecond by the order: the twelve bits behind the time count up (RFC 9562 §6.2, method 1).
 */
export class JobIds {
  #lastMs = 0;
  #count = 0;

  next(nowMs: number = Date.now()): string {
    this.#advance(nowMs);
    const bytes = randomBytes(16);
    bytes.writeUIntBE(this.#lastMs, 0, 6);
    bytes.writeUInt16BE(0x7000 | this.#count, 6);
    bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
    const hex = bytes.toString('hex');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  }

  /** Counts on from the last identifier when the clock was set back, or after 4096 in a millisecond. */
  #advance(nowMs: number): void {
    if (nowMs > this.#lastMs) {
      this.#lastMs = nowMs;
      this.#count = 0;
    } else if (this.#count < 0xfff) {
      this.#count += 1;
    } else {
      this.#lastMs += 1;
      this.#count = 0;
    }
  }
}

/** Returns a text that sorts before the identifiers of all jobs that were submitted at a time or later. */
export function firstJobIdAt(time: Date): string {
  const hex = Math.max(0, time.getTime()).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}
