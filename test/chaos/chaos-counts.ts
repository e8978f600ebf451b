/** Counters of the events of a run, by name. */
export class ChaosCounts {
  readonly #counts = new Map<string, number>();

  add(name: string, count = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
  }

  /** One line for each name, in the order of the alphabet. */
  toString(): string {
    return [...this.#counts]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, count]) => `${String(count).padStart(7)}  ${name}`)
      .join('\n');
  }
}
