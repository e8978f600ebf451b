import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { raceAbort } from '#concurrency/race-abort.ts';

describe('a concurrent map', () => {
  it('returns results in the order of the items, and runs no more than the limit at once', async () => {
    let running = 0;
    let most = 0;
    const results = await mapConcurrent([5, 1, 3, 2], 2, async (turns, index) => {
      running += 1;
      most = Math.max(most, running);
      for (let left = turns; left > 0; left -= 1) await turn();
      running -= 1;
      return `${index}:${turns}`;
    });
    assert.deepEqual(results, ['0:5', '1:1', '2:3', '3:2']);
    assert.equal(most, 2);
  });

  it('starts nothing after the first error, and throws it when all running tasks have settled', async () => {
    const failure = new Error('first');
    const started: number[] = [];
    let isSettled = false;
    const mapping = mapConcurrent([0, 1, 2, 3], 2, async (item) => {
      started.push(item);
      if (item === 0) throw failure;
      await turn();
      isSettled = true;
      throw new Error('second');
    });
    await assert.rejects(mapping, (error) => error === failure);
    assert.deepEqual(started, [0, 1]);
    assert.equal(isSettled, true);
  });

  it('starts nothing more when the signal is aborted, and throws its reason', async () => {
    const abort = new AbortController();
    const reason = new Error('stopped');
    const started: number[] = [];
    const mapping = mapConcurrent(
      [0, 1, 2],
      1,
      async (item) => {
        started.push(item);
        abort.abort(reason);
      },
      abort.signal,
    );
    await assert.rejects(mapping, (error) => error === reason);
    assert.deepEqual(started, [0]);
  });
});

describe('a race with a signal', () => {
  it('settles with the promise', async () => {
    const { signal } = new AbortController();
    assert.equal(await raceAbort(Promise.resolve('done'), signal), 'done');
    const failure = new Error('failed');
    await assert.rejects(raceAbort(Promise.reject(failure), signal), (error) => error === failure);
  });

  it('throws the reason when the signal is aborted before or meanwhile, whatever becomes of the promise', async () => {
    const abort = new AbortController();
    const reason = new Error('stopped');
    const late = Promise.withResolvers<void>();
    const racing = raceAbort(late.promise, abort.signal);
    abort.abort(reason);
    await assert.rejects(racing, (error) => error === reason);
    await assert.rejects(raceAbort(Promise.resolve(), abort.signal), (error) => error === reason);
    late.reject(new Error('ignored'));
    await turn();
  });
});
