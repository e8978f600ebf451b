import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Backoff, backoffMs, pause, retry } from '#concurrency/retry.ts';

const NO_PAUSE: Backoff = { firstMs: 0, maxMs: 0 };

describe('an exponential back-off', () => {
  it('doubles up to the longest pause, however many failures there were', () => {
    const backoff = { firstMs: 100, maxMs: 1000 };
    const pauses = [1, 2, 3, 4, 5, 5000].map((failures) => backoffMs(failures, backoff, 0));
    assert.deepEqual(pauses, [100, 200, 400, 800, 1000, 1000]);
  });

  it('grows by another factor where one is given', () => {
    assert.equal(backoffMs(3, { firstMs: 100, maxMs: 10_000, factor: 4 }, 0), 1600);
  });

  it('is shortened by chance, by no more than its jitter', () => {
    assert.equal(backoffMs(1, { firstMs: 100, maxMs: 1000, jitter: 0.5 }, 1), 50);
    assert.equal(backoffMs(1, { firstMs: 100, maxMs: 1000 }, 1), 80);
  });
});

describe('a retry', () => {
  it('returns the result of the first attempt that succeeds', async () => {
    const attempts: number[] = [];
    const result = await retry(
      async (attempt) => {
        attempts.push(attempt);
        if (attempt < 3) throw new Error('busy');
        return 'done';
      },
      { backoff: NO_PAUSE, maxAttempts: 5, isTransient: () => true },
    );
    assert.equal(result, 'done');
    assert.deepEqual(attempts, [1, 2, 3]);
  });

  it('throws the last error after the last attempt, of whatever kind it is', async () => {
    let attempts = 0;
    const failing = retry(() => Promise.reject(++attempts), {
      backoff: NO_PAUSE,
      maxAttempts: 3,
      isTransient: () => true,
    });
    await assert.rejects(failing, (error) => error === 3);
  });

  it('does not retry a permanent error', async () => {
    let attempts = 0;
    const failing = retry(() => Promise.reject(++attempts), {
      backoff: NO_PAUSE,
      maxAttempts: 3,
      isTransient: () => false,
    });
    await assert.rejects(failing, (error) => error === 1);
  });

  it('stops with the reason of the signal, during a pause too', async () => {
    const abort = new AbortController();
    const reason = new Error('stopped');
    const failing = retry(
      async () => {
        queueMicrotask(() => setImmediate(() => abort.abort(reason)));
        throw new Error('busy');
      },
      {
        backoff: { firstMs: 3_600_000, maxMs: 3_600_000 },
        maxAttempts: 3,
        isTransient: () => true,
        signal: abort.signal,
      },
    );
    await assert.rejects(failing, (error) => error === reason);
    await assert.rejects(pause(3_600_000, abort.signal), (error) => error === reason);
  });
});
