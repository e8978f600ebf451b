import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';

/** The bounds of a batcher. */
export interface BatchLimits {
  /** Calls in one batch. */
  readonly maxSize: number;
  /** Total weight of a batch of several calls. */
  readonly maxWeight: number;
  /** Batches that run at the same time. */
  readonly maxConcurrent: number;
}

interface Call<Argument, Answer> {
  readonly argument: Argument;
  readonly weight: number;
  readonly answer: PromiseWithResolvers<Answer>;
}

/**
 * Runs calls in batches. A call that arrives alone starts at once; calls that arrive while batches run share the next batch.
 */
export class Batcher<Argument, Answer> {
  readonly #runBatch: (batch: readonly Argument[]) => Promise<readonly Answer[]>;
  readonly #limits: BatchLimits;
  readonly #pending: Call<Argument, Answer>[] = [];
  #running = 0;

  /** `runBatch` does all or nothing, and returns the answers in the order of its arguments. */
  constructor(runBatch: (batch: readonly Argument[]) => Promise<readonly Answer[]>, limits: BatchLimits) {
    this.#runBatch = runBatch;
    this.#limits = limits;
  }

  /** Runs a call in the next batch. */
  call(argument: Argument, weight: number): Promise<Answer> {
    const answer = Promise.withResolvers<Answer>();
    this.#pending.push({ argument, weight, answer });
    // Other calls in the same turn of the event loop join the batch.
    queueMicrotask(() => void this.#runPending());
    return answer.promise;
  }

  async #runPending(): Promise<void> {
    if (this.#running >= this.#limits.maxConcurrent) return;
    this.#running += 1;
    while (this.#pending.length > 0) await this.#run(this.#takeBatch());
    this.#running -= 1;
  }

  #takeBatch(): Call<Argument, Answer>[] {
    const { maxSize, maxWeight } = this.#limits;
    let count = 0;
    for (let weight = 0; count < Math.min(maxSize, this.#pending.length); count += 1) {
      weight += this.#pending[count]?.weight ?? 0;
      if (count > 0 && weight > maxWeight) break;
    }
    return this.#pending.splice(0, count);
  }

  /** Runs a batch, and settles its calls. When it fails because of one call, each is run on its own. Never rejects. */
  async #run(batch: readonly Call<Argument, Answer>[]): Promise<void> {
    try {
      const answers = await this.#runBatch(batch.map(({ argument }) => argument));
      for (const [index, { answer }] of batch.entries()) answer.resolve(itemAt(answers, index));
    } catch (error) {
      // An AppError says that the database cannot be used, which concerns every call.
      if (batch.length === 1 || error instanceof AppError) for (const { answer } of batch) answer.reject(error);
      else for (const one of batch) await this.#run([one]);
    }
  }
}
