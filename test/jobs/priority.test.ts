import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compareInputs, priorityOf } from '#jobs/store/priority.ts';

const place = fc.record({ sync: fc.boolean(), inputIndex: fc.nat(100_000), backlog: fc.nat(100_000) });

describe('the priority of an input', () => {
  test('is a whole number that falls with its place in the job and the backlog of its caller', () => {
    fc.assert(
      fc.property(place, fc.nat(1000), (one, more) => {
        const priority = priorityOf(one);
        assert(Number.isSafeInteger(priority));
        assert(priorityOf({ ...one, inputIndex: one.inputIndex + more }) <= priority);
        assert(priorityOf({ ...one, backlog: one.backlog + more }) <= priority);
      }),
    );
  });

  test('is higher for every sync input than for any other', () => {
    fc.assert(
      fc.property(place, place, (one, other) => {
        assert(priorityOf({ ...one, sync: true }) > priorityOf({ ...other, sync: false }));
      }),
    );
  });

  test('decides first, then the time of submission, then the place in the job', () => {
    const inputs = [
      { priority: 0, jobId: 'b', inputIndex: 0 },
      { priority: -1, jobId: 'a', inputIndex: 2 },
      { priority: 100, jobId: 'c', inputIndex: 0 },
      { priority: -1, jobId: 'a', inputIndex: 1 },
      { priority: 0, jobId: 'a', inputIndex: 0 },
    ];
    const sorted = inputs.toSorted(compareInputs).map(({ jobId, inputIndex }) => `${jobId}${inputIndex}`);
    assert.deepEqual(sorted, ['c0', 'a0', 'b0', 'a1', 'a2']);
  });
});
