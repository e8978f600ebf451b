import { ByteSlab } from '#bytes/byte-slab.ts';

/**
 * Where groups of fragments are worked on, one at a time, of whatever rendition: they use the memory of each other, and
 * the fragments of one keep the machine busy.
 */
export class GroupBench {
  readonly #slab = new ByteSlab();
  #last: Promise<unknown> = Promise.resolve();

  /** Works on a group when those before it are done. The slab is the group's until then. */
  use<Result>(work: (slab: ByteSlab) => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(async () => {
      const result = await work(this.#slab);
      // Whatever a group that failed still does with its buffers, nothing of it is used again.
      this.#slab.reset();
      return result;
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}
