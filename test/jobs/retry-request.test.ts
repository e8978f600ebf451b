import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { AppError } from '#errors/app-error.ts';
import { chosenInputs, INPUT_LISTS, openInputs, type RetryChoice, retryRequest } from '#jobs/retry-request.ts';
import type { RetriedJob, UnsuccessfulInput } from '#jobs/store/job-store.ts';
import { operations } from '#operations/registry.ts';
import { ENDED, failedInput, file } from '../support/jobs/retried-job.ts';

function refusalOf(job: RetriedJob, choice: RetryChoice = {}): AppError {
  try {
    chosenInputs('a job', job, choice);
  } catch (error) {
    assert(error instanceof AppError);
    return error;
  }
  return assert.fail('the retry was accepted');
}

const request = (job: RetriedJob) => retryRequest(job, job.unsuccessful);

describe('the request of a retry', () => {
  test('has the failed inputs alone, and all else that the request had', () => {
    const described = { clientReference: 'order-4711', labels: { project: 'evening-news' } };
    const output = { type: 'local', prefix: 'newsroom', name: null };
    const params = { segment_duration: 4 };
    const stored = { outputJson: JSON.stringify(output), paramsJson: JSON.stringify(params) };
    assert.deepEqual(request({ ...ENDED, ...described, ...stored }), {
      inputs: [file('/media/1.mp4'), file('/media/3.mp4')],
      output,
      params,
      client_reference: 'order-4711',
      labels: { project: 'evening-news' },
    });
    assert.deepEqual(Object.keys(request(ENDED)), ['inputs']);
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
    const made = request({ ...ENDED, paramsJson: JSON.stringify(params) });
    assert.deepEqual(made.params, { ...params, parent_overrides: moved, sidecars: moved });
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
});

describe('the inputs of a retry', () => {
  const indexesOf = (inputs: readonly UnsuccessfulInput[]) => inputs.map(({ inputIndex }) => inputIndex);
  const mixed: RetriedJob = {
    ...ENDED,
    unsuccessful: [
      failedInput(0),
      failedInput(2, { reason: 'OUTPUT_FAILED' }),
      failedInput(4, { isRetried: true }),
      failedInput(6, { status: 'cancelled', reason: null }),
    ],
  };

  for (const [choice, indexes] of [
    [{}, [0, 2, 4]],
    [{ reasons: ['SOURCE_NOT_FOUND'] }, [0, 4]],
    [{ inputIndexes: [4, 2, 1] }, [2, 4]],
    [{ inputIndexes: [0, 2], reasons: ['OUTPUT_FAILED'] }, [2]],
    [{ statuses: ['cancelled'] }, [6]],
    [{ statuses: ['cancelled', 'failed'] }, [0, 2, 4, 6]],
  ] as const satisfies readonly (readonly [RetryChoice, readonly number[]])[]) {
    test(`are those that all of ${JSON.stringify(choice)} holds for`, () => {
      assert.deepEqual(indexesOf(chosenInputs('a job', mixed, choice)), indexes);
    });
  }

  test('are only those that no retry has, and whose queries are kept, where many jobs are retried', () => {
    assert.deepEqual(indexesOf(openInputs(mixed, {})), [0, 2]);
    assert.deepEqual(indexesOf(openInputs(mixed, { reasons: ['OUTPUT_FAILED'] })), [2]);
    const unsuccessful = [failedInput(0, { isErased: true }), failedInput(1)];
    assert.deepEqual(indexesOf(openInputs({ ...ENDED, unsuccessful }, {})), [1]);
  });

  test('are refused while the job runs, and where there are none', () => {
    assert.equal(refusalOf({ ...ENDED, isFinished: false }).reason, 'JOB_NOT_ENDED');
    assert.equal(refusalOf({ ...ENDED, unsuccessful: [] }).reason, 'NOTHING_TO_RETRY');
    assert.equal(refusalOf(ENDED, { statuses: ['cancelled'] }).reason, 'NOTHING_TO_RETRY');
  });

  test('are refused where the job has no such input', () => {
    const refusal = refusalOf(ENDED, { inputIndexes: [3, 9] });
    assert.deepEqual([refusal.reason, refusal.location], ['OVERRIDE_OUT_OF_RANGE', { field: 'input_indexes[1]' }]);
  });

  test('are refused with those whose queries were erased', () => {
    const unsuccessful = [failedInput(1), failedInput(3, { isErased: true }), failedInput(7, { isErased: true })];
    const refusal = refusalOf({ ...ENDED, unsuccessful });
    assert.equal(refusal.reason, 'QUERY_ERASED');
    assert.deepEqual(refusal.details, { names: ['3.mp4', '7.mp4'], count: 2 });
    assert.deepEqual(refusal.location, { inputIndex: 3, inputIndexes: [3, 7] });
  });
});
