import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { AppError } from '#errors/app-error.ts';
import { INPUT_LISTS, retryRequest } from '#jobs/retry-request.ts';
import type { RetriedJob } from '#jobs/store/job-store.ts';
import { operations } from '#operations/registry.ts';

const file = (path: string) => ({ type: 'local_file_path', path });

function failedInput(inputIndex: number, isErased = false): RetriedJob['failed'][number] {
  return {
    inputIndex,
    inputJson: JSON.stringify(file(`/media/${inputIndex}.mp4`)),
    name: `${inputIndex}.mp4`,
    isErased,
  };
}

const ENDED: RetriedJob = {
  operation: 'c2pa-video',
  caller: null,
  clientReference: null,
  labels: null,
  outputJson: 'null',
  paramsJson: 'null',
  isFinished: true,
  failed: [failedInput(1), failedInput(3)],
};

function refusalOf(job: RetriedJob): AppError {
  try {
    retryRequest('a job', job);
  } catch (error) {
    assert(error instanceof AppError);
    return error;
  }
  return assert.fail('the retry was accepted');
}

describe('the request of a retry', () => {
  test('has the failed inputs alone, and all else that the request had', () => {
    const described = { clientReference: 'order-4711', labels: { project: 'evening-news' } };
    const output = { type: 'local', prefix: 'newsroom', name: null };
    const params = { segment_duration: 4 };
    const stored = { outputJson: JSON.stringify(output), paramsJson: JSON.stringify(params) };
    assert.deepEqual(retryRequest('a job', { ...ENDED, ...described, ...stored }), {
      inputs: [file('/media/1.mp4'), file('/media/3.mp4')],
      output,
      params,
      client_reference: 'order-4711',
      labels: { project: 'evening-news' },
    });
    assert.deepEqual(Object.keys(retryRequest('a job', ENDED)), ['inputs']);
  });

  test('counts inputs anew in every list that names them, and leaves out what is for others', () => {
    const entries = [0, 3, 1].map((input_index) => ({ input_index, parent: null, source: file(`/s/${input_index}`) }));
    const params = {
      parent: { type: 'reference', reference: 'p' },
      assertions: [{ label: 'com.example.a', data: { input_index: 3, parent_overrides: [{ input_index: 0 }] } }],
      parent_overrides: entries,
      sidecars: entries,
    };
    const moved = [
      { ...entries[1], input_index: 1 },
      { ...entries[2], input_index: 0 },
    ];
    const request = retryRequest('a job', { ...ENDED, paramsJson: JSON.stringify(params) });
    assert.deepEqual(request.params, { ...params, parent_overrides: moved, sidecars: moved });
  });

  test('knows every list of every operation whose entries are each for one input', () => {
    const lists = operations.flatMap(({ request }) => {
      const params = (request as z.ZodType as z.ZodObject).shape['params'];
      const { shape } = (params instanceof z.ZodOptional ? params.unwrap() : params) as z.ZodObject;
      const written = Object.entries(shape).map(
        ([name, schema]) =>
          [name, JSON.stringify(z.toJSONSchema(schema as z.ZodType, { unrepresentable: 'any' }))] as const,
      );
      return written.filter(([, schema]) => schema.includes('"input_index"')).map(([name]) => name);
    });
    assert.deepEqual(new Set(lists), new Set(INPUT_LISTS));
  });

  test('is refused while the job runs, and where nothing failed', () => {
    assert.equal(refusalOf({ ...ENDED, isFinished: false }).reason, 'JOB_NOT_ENDED');
    assert.equal(refusalOf({ ...ENDED, failed: [] }).reason, 'NOTHING_FAILED');
  });

  test('is refused with the inputs whose queries were erased', () => {
    const failed = [failedInput(1), failedInput(3, true), failedInput(7, true)];
    const refusal = refusalOf({ ...ENDED, failed });
    assert.equal(refusal.reason, 'QUERY_ERASED');
    assert.deepEqual(refusal.details, { names: ['3.mp4', '7.mp4'], count: 2 });
    assert.deepEqual(refusal.location, { inputIndex: 3, inputIndexes: [3, 7] });
  });
});
