/** Work that goes on behind its callers, so much of it at once and no more. */
export class BackgroundWork {
  readonly #limit: number;
  #running = 0;
  /** Callers that wait for a place, and those that wait for the end of everything. */
  readonly #waiting: (() => void)[] = [];
  readonly #awaitingEnd: (() => void)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Starts a piece of work, which never rejects, and returns once it has begun. */
  async start(work: () => Promise<void>): Promise<void> {
    if (this.#running < this.#limit) this.#running += 1;
    else await new Promise<void>((begin) => this.#waiting.push(begin));
    void work().finally(() => this.#ended());
  }

  /** Settles when nothing runs and nobody waits. */
  async ended(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#awaitingEnd.push(resolve));
  }

  /** The place goes to whoever waits longest. */
  #ended(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) return next();
    this.#running -= 1;
    if (this.#running === 0) for (const resolve of this.#awaitingEnd.splice(0)) resolve();
  }
}
