import type { ApiInputRef } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { sampleOfNames } from '#errors/entry.ts';
import type { OperationRequest } from '#operations/operation.ts';
import type { RetriedJob } from './store/job-store.ts';

/** The lists in `params` whose entries are each for one input, which they name by `input_index`. */
export const INPUT_LISTS = ['parent_overrides', 'sidecars'] as const;

/**
 * Returns the request that runs the failed inputs of a job again, and nothing else: inputs are counted anew, also where
 * `params` refers to them. Throws JOB_NOT_ENDED, NOTHING_FAILED or QUERY_ERASED.
 */
export function retryRequest(jobId: string, job: RetriedJob): OperationRequest {
  const { failed } = job;
  if (!job.isFinished) throw new AppError('JOB_NOT_ENDED', { jobId });
  if (failed.length === 0) throw new AppError('NOTHING_FAILED', { jobId });
  refuseErased(job);
  const newIndexes = new Map(failed.map(({ inputIndex }, index) => [inputIndex, index]));
  const output: OperationRequest['output'] = JSON.parse(job.outputJson);
  const params = renumbered(JSON.parse(job.paramsJson), newIndexes);
  return {
    inputs: failed.map(({ inputJson }) => JSON.parse(inputJson) as ApiInputRef),
    ...(output != null && { output }),
    ...(params !== null && { params }),
    ...(job.clientReference !== null && { client_reference: job.clientReference }),
    ...(job.labels !== null && { labels: job.labels }),
  };
}

function refuseErased({ failed }: RetriedJob): void {
  const erased = failed.filter(({ isErased }) => isErased);
  const [first] = erased;
  if (first === undefined) return;
  const names = erased.map(({ inputIndex, name }) => (name === null ? `input ${inputIndex}` : name));
  const inputIndexes = erased.map(({ inputIndex }) => inputIndex);
  throw new AppError('QUERY_ERASED', sampleOfNames(names), { inputIndex: first.inputIndex, inputIndexes });
}

/** Copies `params` with the entries for inputs that have a new index, and without those for others. */
function renumbered(params: object | null, newIndexes: ReadonlyMap<number, number>): object | null {
  if (params === null) return null;
  const lists = Object.entries(params as Record<string, { input_index: number }[]>)
    .filter(([name]) => INPUT_LISTS.some((list) => list === name))
    .map(([name, entries]) => [name, entries.flatMap((entry) => movedTo(newIndexes.get(entry.input_index), entry))]);
  return { ...params, ...Object.fromEntries(lists) };
}

function movedTo<Entry extends object>(inputIndex: number | undefined, entry: Entry): Entry[] {
  return inputIndex === undefined ? [] : [{ ...entry, input_index: inputIndex }];
}
