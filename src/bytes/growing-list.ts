/** A list that is read while it grows: whoever goes through it waits for what comes next, until it is ended. */
export class GrowingList<Item> implements AsyncIterable<Item> {
  readonly #items: Item[] = [];
  #isEnded = false;
  #changed = Promise.withResolvers<void>();

  get items(): readonly Item[] {
    return this.#items;
  }

  push(...items: readonly Item[]): void {
    this.#items.push(...items);
    this.#tell();
  }

  /** Nothing comes after this. Safe to call again. */
  end(): void {
    this.#isEnded = true;
    this.#tell();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    for (let index = 0; ; index += 1) {
      while (index >= this.#items.length) {
        if (this.#isEnded) return;
        await this.#changed.promise;
      }
      yield this.#items[index] as Item;
    }
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}
