/** List that can be iterated while it grows: each iteration waits for the next item, until `end` is called. */
export class GrowingList<Item> implements AsyncIterable<Item> {
  readonly #items: Item[] = [];
  #isEnded = false;
  #changed = Promise.withResolvers<void>();

  get items(): readonly Item[] {
    return this.#items;
  }

  push(...items: readonly Item[]): void {
    this.#items.push(...items);
    this.#wake();
  }

  /** Ends all iterations after the last item. Safe to call again. */
  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    for (let seen = 0; ; ) {
      for (const item of this.#items.slice(seen)) {
        seen += 1;
        yield item;
      }
      if (seen < this.#items.length) continue;
      if (this.#isEnded) return;
      await this.#changed.promise;
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}
