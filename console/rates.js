/** The weight of the newest measurement: bytes are reported in bursts. */
const NEWEST_SHARE = 0.4;

/** Changes that follow each other faster say little about the rate. */
const MIN_INTERVAL_MS = 800;

/** @typedef {{ atMs: number, bytesDone: number, bytesPerSecond: number }} Seen */

/** Measures how fast jobs are, from the progress that was seen of them. */
export class Rates {
  /** @type {Map<string, Seen>} */
  #seen = new Map();

  /**
   * Returns the rate of a job in bytes a second; 0 where nothing is known yet.
   * @param {string} id @param {number} bytesDone @param {number} nowMs
   */
  rateOf(id, bytesDone, nowMs) {
    const before = this.#seen.get(id);
    const elapsedMs = nowMs - (before?.atMs ?? nowMs);
    if (before !== undefined && elapsedMs < MIN_INTERVAL_MS) return before.bytesPerSecond;
    const newest = before === undefined ? 0 : (Math.max(0, bytesDone - before.bytesDone) / elapsedMs) * 1000;
    const smoothed =
      before === undefined || before.bytesPerSecond === 0
        ? newest
        : before.bytesPerSecond * (1 - NEWEST_SHARE) + newest * NEWEST_SHARE;
    this.#seen.set(id, { atMs: nowMs, bytesDone, bytesPerSecond: smoothed });
    return smoothed;
  }
}
