import type { ApiOutputSpec } from '#contract/request.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import type { ChaosOperation, ChaosSource } from './chaos-sources.ts';

const MOST_JOBS = 4;
const MOST_COPIES = 3;

/** A job that a round asks for. */
export interface ChaosJob {
  /** Tells the job from every other of the run; the service must make one job of it, however often it is sent. */
  readonly idempotencyKey: string;
  readonly operation: ChaosOperation;
  readonly isSync: boolean;
  readonly output: ApiOutputSpec;
  /** In the order of the job's inputs. */
  readonly sources: readonly ChaosSource[];
}

export interface JobWishes {
  readonly round: number;
  readonly operations: readonly ChaosOperation[];
  /** One job at least is of this operation. */
  readonly wanted: ChaosOperation;
  readonly bucket: string | null;
}

/**
 * The jobs of a round. Each has an output path of its own, which a job of a former round may have used: what is there is
 * replaced. Inputs of one job write different leaves.
 */
export function chooseJobs(random: SeededRandom, { round, operations, wanted, bucket }: JobWishes): ChaosJob[] {
  const others = Array.from({ length: random.between(0, MOST_JOBS - 1) }, () => random.pick(operations));
  return random.shuffled([wanted, ...others]).map((operation, index) => {
    const count = random.between(1, Math.min(MOST_COPIES, operation.sources.length));
    const destination = { prefix: 'chaos', name: `output ${index}` };
    const isRemote = bucket !== null && random.chance(0.5);
    return {
      idempotencyKey: `round-${round}-job-${index}`,
      operation,
      isSync: random.chance(0.25),
      output: isRemote ? { type: 's3', bucket, ...destination } : { type: 'local', ...destination },
      sources: random.shuffled(operation.sources).slice(0, count),
    };
  });
}

/** The body of the request for a job. */
export function requestOf({ operation, output, sources }: ChaosJob): object {
  return { inputs: sources.map(({ input }) => input), output, ...(operation.params && { params: operation.params }) };
}
