import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BackgroundTasks } from '#concurrency/background-tasks.ts';

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
