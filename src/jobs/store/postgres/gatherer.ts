import { AppError } from '#errors/app-error.ts';

/** How much is done together, and how often at once. */
export interface GathererBounds {
  readonly maxTogether: number;
  /** What is heavier together than this is done apart. */
  readonly maxWeight: number;
  readonly maxAtOnce: number;
}

interface Asked<Given, Answer> {
  readonly given: Given;
  readonly weight: number;
  readonly answer: PromiseWithResolvers<Answer>;
}

/**
 * Does together what is asked for while others are being done: what comes alone begins at once, and the more comes, the
 * less each costs.
 */
export class Gatherer<Given, Answer> {
  readonly #doAll: (all: readonly Given[]) => Promise<readonly Answer[]>;
  readonly #bounds: GathererBounds;
  readonly #waiting: Asked<Given, Answer>[] = [];
  #underWay = 0;

  /** `doAll` answers in the order of what it is given, and does all or nothing. */
  constructor(doAll: (all: readonly Given[]) => Promise<readonly Answer[]>, bounds: GathererBounds) {
    this.#doAll = doAll;
    this.#bounds = bounds;
  }

  ask(given: Given, weight: number): Promise<Answer> {
    const answer = Promise.withResolvers<Answer>();
    this.#waiting.push({ given, weight, answer });
    // What else is asked for in the same turn of the event loop goes with it.
    queueMicrotask(() => void this.#doSome());
    return answer.promise;
  }

  async #doSome(): Promise<void> {
    if (this.#underWay >= this.#bounds.maxAtOnce) return;
    this.#underWay += 1;
    while (this.#waiting.length > 0) await this.#answer(this.#takeSome());
    this.#underWay -= 1;
  }

  #takeSome(): Asked<Given, Answer>[] {
    const { maxTogether, maxWeight } = this.#bounds;
    let count = 0;
    for (let weight = 0; count < Math.min(maxTogether, this.#waiting.length); count += 1) {
      weight += this.#waiting[count]?.weight ?? 0;
      if (count > 0 && weight > maxWeight) break;
    }
    return this.#waiting.splice(0, count);
  }

  /** Where one of them cannot be done, each is done on its own. Never rejects. */
  async #answer(some: readonly Asked<Given, Answer>[]): Promise<void> {
    try {
      const answers = await this.#doAll(some.map(({ given }) => given));
      for (const [index, { answer }] of some.entries()) answer.resolve(answers[index] as Answer);
    } catch (error) {
      // What is wrong with the database is wrong for all of them.
      if (some.length === 1 || error instanceof AppError) for (const { answer } of some) answer.reject(error);
      else for (const one of some) await this.#answer([one]);
    }
  }
}
