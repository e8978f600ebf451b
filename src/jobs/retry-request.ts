import type { ApiInputRef } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { sampleOfNames } from '#errors/entry.ts';
import type { OperationRequest } from '#operations/operation.ts';
import type { RetriedJob, UnsuccessfulInput } from './store/job-store.ts';

/** The lists in `params` whose entries are each for one input, which they name by `input_index`. */
export const INPUT_LISTS = ['parent_overrides', 'sidecars'] as const;

/** The choice of inputs that a retry takes of a job: those that everything given here holds for. */
export interface RetryChoice {
  readonly reasons?: readonly string[] | undefined;
  readonly inputIndexes?: readonly number[] | undefined;
  /** Failed ones unless given. */
  readonly statuses?: readonly UnsuccessfulInput['status'][] | undefined;
}

/**
 * Returns the inputs of a job that a retry takes by a choice. Throws `JOB_NOT_ENDED`, `OVERRIDE_OUT_OF_RANGE`,
 * `NOTHING_TO_RETRY` or `QUERY_ERASED`.
 */
export function chosenInputs(jobId: string, job: RetriedJob, choice: RetryChoice): readonly UnsuccessfulInput[] {
  if (!job.isFinished) throw new AppError('JOB_NOT_ENDED', { jobId });
  refuseOutside(job, choice);
  const inputs = matchingInputs(job, choice);
  if (inputs.length === 0) throw new AppError('NOTHING_TO_RETRY', { jobId, statuses: statusesOf(choice) });
  refuseErased(inputs);
  return inputs;
}

/** Returns the failed inputs of a job that no retry has, and that a retry can read. */
export function openInputs(job: RetriedJob, choice: Pick<RetryChoice, 'reasons'>): readonly UnsuccessfulInput[] {
  return matchingInputs(job, choice).filter(({ isRetried, isErased }) => !isRetried && !isErased);
}

function matchingInputs({ unsuccessful }: RetriedJob, choice: RetryChoice): readonly UnsuccessfulInput[] {
  const statuses = statusesOf(choice);
  const reasons = choice.reasons && new Set(choice.reasons);
  const indexes = choice.inputIndexes && new Set(choice.inputIndexes);
  return unsuccessful.filter(
    ({ status, reason, inputIndex }) =>
      statuses.includes(status) && (reasons?.has(reason ?? '') ?? true) && (indexes?.has(inputIndex) ?? true),
  );
}

function statusesOf({ statuses = ['failed'] }: RetryChoice): readonly UnsuccessfulInput['status'][] {
  return statuses;
}

function refuseOutside({ inputCount }: RetriedJob, { inputIndexes = [] }: RetryChoice): void {
  const position = inputIndexes.findIndex((inputIndex) => inputIndex >= inputCount);
  const inputIndex = inputIndexes[position];
  if (inputIndex === undefined) return;
  throw new AppError('OVERRIDE_OUT_OF_RANGE', { inputIndex, inputCount }, { field: `input_indexes[${position}]` });
}

function refuseErased(inputs: readonly UnsuccessfulInput[]): void {
  const erased = inputs.filter(({ isErased }) => isErased);
  const [first] = erased;
  if (first === undefined) return;
  const names = erased.map(({ inputIndex, name }) => (name === null ? `input ${inputIndex}` : name));
  const inputIndexes = erased.map(({ inputIndex }) => inputIndex);
  throw new AppError('QUERY_ERASED', sampleOfNames(names), { inputIndex: first.inputIndex, inputIndexes });
}

/**
 * Returns the request that runs inputs of a job again, and nothing else: inputs are counted anew, also where `params` refers
 * to them.
 */
export function retryRequest(job: RetriedJob, inputs: readonly UnsuccessfulInput[]): OperationRequest {
  const newIndexes = new Map(inputs.map(({ inputIndex }, index) => [inputIndex, index]));
  const output: OperationRequest['output'] = JSON.parse(job.outputJson);
  const params = renumbered(JSON.parse(job.paramsJson), newIndexes);
  return {
    inputs: inputs.map(({ inputJson }) => JSON.parse(inputJson) as ApiInputRef),
    ...(output != null && { output }),
    ...(params !== null && { params }),
    ...(job.clientReference !== null && { client_reference: job.clientReference }),
    ...(job.labels !== null && { labels: job.labels }),
  };
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
