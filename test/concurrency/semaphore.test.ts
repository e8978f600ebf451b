import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { BackgroundTasks, Semaphore } from '#concurrency/semaphore.ts';

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

/** Tasks that settle when they are told to, and the numbers of those that have started. */
function controlledTasks() {
  const finishers: (() => void)[] = [];
  const started: number[] = [];
  const task = (number: number) => () => {
    started.push(number);
    return new Promise<void>((resolve) => finishers.push(resolve));
  };
  return { finishers, started, task };
}

test('a bounded number of tasks runs at once, in order of arrival', async () => {
  const tasks = new BackgroundTasks({ maxRunning: 2, maxWaiting: 0 });
  const { finishers, started, task } = controlledTasks();
  await tasks.start(task(1));
  await tasks.start(task(2));
  const third = tasks.start(task(3));
  const fourth = tasks.start(task(4));
  assert.deepEqual(started, [1, 2]);
  finishers[1]?.();
  await third;
  finishers[0]?.();
  await fourth;
  assert.deepEqual(started, [1, 2, 3, 4]);
  const all = tasks.settled();
  finishers[2]?.();
  finishers[3]?.();
  await all;
  await tasks.settled();
});

test('callers wait only while too many tasks do', async () => {
  const tasks = new BackgroundTasks({ maxRunning: 1, maxWaiting: 1 });
  const { finishers, started, task } = controlledTasks();
  await tasks.start(task(1));
  await tasks.start(task(2));
  let isWaiting = true;
  const third = tasks.start(task(3)).then(() => {
    isWaiting = false;
  });
  await Promise.resolve();
  assert.deepEqual([started, isWaiting], [[1], true]);
  finishers[0]?.();
  await third;
  assert.deepEqual(started, [1, 2], 'the third one waits in the position of the second');
});

test('waiting tasks count as not settled', async () => {
  const tasks = new BackgroundTasks({ maxRunning: 1, maxWaiting: 1 });
  const { finishers, started, task } = controlledTasks();
  await tasks.start(task(1));
  await tasks.start(task(2));
  let hasSettled = false;
  const all = tasks.settled().then(() => {
    hasSettled = true;
  });
  finishers[0]?.();
  await new Promise(setImmediate);
  assert.deepEqual([started, hasSettled], [[1, 2], false]);
  finishers[1]?.();
  await all;
});
