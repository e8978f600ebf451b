import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Semaphore } from '#concurrency/semaphore.ts';

describe('a semaphore', () => {
  it('grants what is free at once and the rest in order of arrival', async () => {
    const semaphore = new Semaphore(2);
    const order: string[] = [];
    await semaphore.acquire();
    await semaphore.acquire();
    const waiting = ['a', 'b'].map((name) => semaphore.acquire().then(() => order.push(name)));
    assert.equal(semaphore.waiting, 2);
    semaphore.release();
    await waiting[0];
    await turn();
    assert.deepEqual(order, ['a']);
    semaphore.release();
    await waiting[1];
    assert.deepEqual(order, ['a', 'b']);
  });

  it('does not let a small request overtake a large one', async () => {
    const semaphore = new Semaphore(4);
    await semaphore.acquire(2);
    const order: number[] = [];
    const large = semaphore.acquire(3).then(() => order.push(3));
    assert.equal(semaphore.tryAcquire(1), false);
    const small = semaphore.acquire(1).then(() => order.push(1));
    await turn();
    assert.deepEqual(order, []);
    semaphore.release(2);
    await Promise.all([large, small]);
    assert.deepEqual(order, [3, 1]);
    assert.equal(semaphore.available, 0);
  });

  it('grants more permits than there are when nobody else has any', async () => {
    const semaphore = new Semaphore(4);
    await semaphore.acquire(1);
    const huge = semaphore.acquire(100);
    semaphore.release(1);
    await huge;
    assert.equal(semaphore.available, 0);
    semaphore.release(100);
    assert.equal(semaphore.available, 4);
  });

  it('gives up with the reason of the signal, and lets the next one pass', async () => {
    const semaphore = new Semaphore(2);
    await semaphore.acquire(1);
    const abort = new AbortController();
    const large = semaphore.acquire(2, abort.signal);
    const small = semaphore.acquire(1);
    const reason = new Error('stopped');
    abort.abort(reason);
    await assert.rejects(large, (error) => error === reason);
    await small;
    await assert.rejects(semaphore.acquire(1, abort.signal), (error) => error === reason);
    assert.equal(semaphore.waiting, 0);
  });

  it('keeps what was granted when the signal is aborted afterwards', async () => {
    const semaphore = new Semaphore(1);
    const abort = new AbortController();
    await semaphore.acquire();
    const granted = semaphore.acquire(1, abort.signal);
    semaphore.release();
    abort.abort();
    await granted;
    assert.equal(semaphore.available, 0);
  });

  it('is a mutex with one permit, which a failed task releases', async () => {
    const mutex = new Semaphore(1);
    let running = 0;
    let most = 0;
    const task = async (): Promise<void> => {
      running += 1;
      most = Math.max(most, running);
      await turn();
      running -= 1;
    };
    await assert.rejects(mutex.run(() => Promise.reject(new Error('failed'))));
    await Promise.all([mutex.run(task), mutex.run(task), mutex.run(task)]);
    assert.equal(most, 1);
  });

  it('does not take more back than it gave', () => {
    assert.throws(() => new Semaphore(1).release());
  });
});
