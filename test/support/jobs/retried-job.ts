import type { RetriedJob, UnsuccessfulInput } from '#jobs/store/job-store.ts';

export const file = (path: string) => ({ type: 'local_file_path', path });

/** An input that failed, and that a retry may choose. */
export function failedInput(inputIndex: number, more: Partial<UnsuccessfulInput> = {}): UnsuccessfulInput {
  return {
    inputIndex,
    inputJson: JSON.stringify(file(`/media/${inputIndex}.mp4`)),
    name: `${inputIndex}.mp4`,
    status: 'failed',
    reason: 'SOURCE_NOT_FOUND',
    isErased: false,
    isRetried: false,
    ...more,
  };
}

/** A job that has ended, of which two inputs failed. */
export const ENDED: RetriedJob = {
  operation: 'c2pa-video',
  caller: null,
  identity: null,
  clientReference: null,
  labels: null,
  outputJson: 'null',
  paramsJson: 'null',
  isFinished: true,
  inputCount: 9,
  unsuccessful: [failedInput(1), failedInput(3)],
};
