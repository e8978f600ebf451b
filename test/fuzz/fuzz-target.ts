import { AppError } from '#errors/app-error.ts';
import type { SeededRandom } from '../support/seeded-random.ts';

/** One parser, or a few behind each other, that reads what callers or their servers send. */
export interface FuzzTarget {
  readonly name: string;
  /** Well-formed inputs that executions start from, out of the folder that `makeSeeds` filled. */
  seeds(folder: string): readonly Buffer[];
  /** Makes an input out of a seed; `other` is another one of the same target. */
  mutate(seed: Buffer, random: SeededRandom, other: Buffer): Buffer;
  /** Reads an input. Whatever it throws but errors of the catalogue is a finding. */
  run(input: Buffer): Promise<void>;
}

/** Characters of a message that names something of its input. */
const MAX_MESSAGE_LENGTH = 20_000;

/** Runs what may refuse its input by an error of the catalogue, or by one of the kinds named. */
export async function mayRefuse(read: () => unknown, ...kinds: readonly (new () => Error)[]): Promise<void> {
  try {
    await read();
  } catch (error) {
    const isRefusal = error instanceof AppError || kinds.some((kind) => error instanceof kind);
    const { length } = (error as Error).message;
    if (!isRefusal) throw error;
    if (length > MAX_MESSAGE_LENGTH) throw new Error(`an error message of ${length} characters`, { cause: error });
  }
}
