/** Random choices that a seed and a round repeat: what was found once can be looked at again. */
export class SeededRandom {
  #state: number;

  constructor(seed: number, round = 0) {
    this.#state = (seed ^ Math.imul(round + 1, 0x9e37_79b9)) >>> 0;
  }

  /** At least 0, below 1 (the generator "mulberry32"). */
  next(): number {
    this.#state = (this.#state + 0x6d2b_79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `low` up to and with `high`. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.between(0, items.length - 1)] as T;
  }

  shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, order: this.next() }))
      .sort((one, other) => one.order - other.order)
      .map(({ item }) => item);
  }
}
