/** How much work goes on behind its callers. */
export interface WorkBounds {
  /** Pieces that run side by side. */
  readonly atOnce: number;
  /** Pieces that wait for their turn before callers have to. */
  readonly waiting: number;
}

/** Work that goes on behind its callers, so much of it at once and no more. */
export class BackgroundWork {
  readonly #bounds: WorkBounds;
  #running = 0;
  readonly #waiting: (() => Promise<void>)[] = [];
  /** Callers that wait until fewer pieces wait, and those that wait for the end of everything. */
  readonly #heldUp: (() => void)[] = [];
  readonly #awaitingEnd: (() => void)[] = [];

  constructor(bounds: WorkBounds) {
    this.#bounds = bounds;
  }

  /** Takes over a piece of work, which never rejects, and returns at once unless too many wait. */
  async start(work: () => Promise<void>): Promise<void> {
    if (this.#running < this.#bounds.atOnce) return this.#run(work);
    this.#waiting.push(work);
    if (this.#waiting.length > this.#bounds.waiting) await new Promise<void>((resolve) => this.#heldUp.push(resolve));
  }

  /** Settles when nothing runs and nothing waits. */
  async ended(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#awaitingEnd.push(resolve));
  }

  #run(work: () => Promise<void>): void {
    this.#running += 1;
    void work().finally(() => this.#next());
  }

  /** The place goes to what waits longest. */
  #next(): void {
    this.#running -= 1;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#run(next);
    this.#heldUp.shift()?.();
    if (this.#running === 0) for (const resolve of this.#awaitingEnd.splice(0)) resolve();
  }
}
