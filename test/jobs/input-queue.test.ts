import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { InputQueue } from '#jobs/dispatching/input-queue.ts';

const NO_LIMITS = { maxRunningInputsPerJob: 1000, maxRunningJobs: 1000 };

/** The jobs of the next starts, each of which ends at once. */
function turns(queue: InputQueue, count: number): (string | undefined)[] {
  return Array.from({ length: count }, () => {
    const jobId = queue.start()?.jobId;
    if (jobId !== undefined) queue.end(jobId);
    return jobId;
  });
}

describe('input queue', () => {
  test('jobs take turns, one input each, so that a batch of 10,000 does not starve a job of one', () => {
    const queue = new InputQueue(NO_LIMITS);
    queue.add('batch', false, 10_000);
    assert.deepEqual(turns(queue, 2), ['batch', 'batch']);
    queue.add('single', false, 1);
    assert(turns(queue, 2).includes('single'));
    queue.add('b', false, 2);
    queue.add('c', false, 2);
    const next = turns(queue, 6);
    for (const jobId of ['b', 'c', 'batch']) assert.equal(next.filter((turn) => turn === jobId).length, 2);
  });

  test('jobs that somebody waits for come first', () => {
    const queue = new InputQueue(NO_LIMITS);
    queue.add('async', false, 10);
    queue.add('sync', true, 3);
    assert.deepEqual(turns(queue, 4), ['sync', 'sync', 'sync', 'async']);
  });

  test('jobs that nobody waits for come forward all the same', () => {
    const queue = new InputQueue(NO_LIMITS);
    queue.add('sync', true, 10_000);
    queue.add('async', false, 10);
    const next = turns(queue, 100);
    assert.equal(next.filter((turn) => turn === 'async').length, 10);
  });

  test('no more inputs of a job run at once than it may have, and others fill the room', () => {
    const queue = new InputQueue({ maxRunningInputsPerJob: 2, maxRunningJobs: 10 });
    queue.add('a', false, 5);
    assert.deepEqual([queue.start()?.jobId, queue.start()?.jobId, queue.start()?.jobId], ['a', 'a', undefined]);
    queue.add('b', false, 1);
    assert.equal(queue.start()?.jobId, 'b');
    queue.end('a');
    assert.equal(queue.start()?.jobId, 'a');
  });

  test('no more jobs have running inputs at once than may', () => {
    const queue = new InputQueue({ maxRunningInputsPerJob: 2, maxRunningJobs: 1 });
    queue.add('a', false, 3);
    queue.add('b', false, 1);
    assert.deepEqual([queue.start()?.jobId, queue.start()?.jobId, queue.start()?.jobId], ['a', 'a', undefined]);
    queue.end('a');
    queue.end('a');
    assert.equal(queue.start()?.jobId, 'b');
  });

  test('jobs that an extra input passes over keep their positions', () => {
    const queue = new InputQueue(NO_LIMITS);
    queue.add('first', false, 1, 'busy');
    assert.equal(queue.start()?.jobId, 'first');
    for (const [jobId, caller] of Object.entries({ second: 'busy', third: 'idle', fourth: 'other' }))
      queue.add(jobId, false, 1, caller);
    assert.equal(queue.startOfIdleJob()?.jobId, 'third');
    assert.deepEqual([queue.start()?.jobId, queue.start()?.jobId, queue.start()], ['second', 'fourth', undefined]);
  });

  test('whatever is added and ended, every input starts once and no limit is passed', () => {
    const operation = fc.oneof(
      fc.record({ add: fc.nat(5), sync: fc.boolean(), count: fc.integer({ min: 1, max: 9 }) }),
      fc.record({ start: fc.constant(true) }),
      fc.record({ end: fc.nat(50) }),
    );
    const limits = fc.record({
      maxRunningInputsPerJob: fc.integer({ min: 1, max: 3 }),
      maxRunningJobs: fc.integer({ min: 1, max: 3 }),
    });
    fc.assert(
      fc.property(limits, fc.array(operation, { maxLength: 200 }), (given, operations) => {
        const queue = new InputQueue(given);
        const running: string[] = [];
        let added = 0;
        let started = 0;
        const start = () => {
          const jobId = queue.start()?.jobId;
          if (jobId === undefined) return false;
          running.push(jobId);
          started += 1;
          assert(running.filter((other) => other === jobId).length <= given.maxRunningInputsPerJob);
          assert(new Set(running).size <= given.maxRunningJobs);
          return true;
        };
        const end = (which: number) => {
          const [jobId] = running.splice(which % Math.max(1, running.length), 1);
          if (jobId !== undefined) queue.end(jobId);
        };
        for (const step of operations) {
          if ('add' in step) {
            queue.add(`${step.sync ? 'sync' : 'async'} ${step.add}`, step.sync, step.count);
            added += step.count;
          } else if ('end' in step) end(step.end);
          else start();
        }
        while (start() || running.length > 0) if (!start()) end(0);
        assert.equal(started, added);
      }),
    );
  });

  test('a hundred thousand jobs start in time that grows with their number only', () => {
    const queue = new InputQueue({ maxRunningInputsPerJob: 1, maxRunningJobs: 4 });
    for (let index = 0; index < 100_000; index += 1) queue.add(`job ${index}`, false, 1);
    assert.equal(new Set(turns(queue, 100_000)).size, 100_000);
    assert.equal(queue.start(), undefined);
  });
});
