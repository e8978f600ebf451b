import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BackgroundWork } from '#outputs/background-work.ts';

test('so much goes on at once, in the order in which it was asked for', async () => {
  const work = new BackgroundWork(2);
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  const piece = (number: number) => () => {
    begun.push(number);
    return new Promise<void>((resolve) => ends.push(resolve));
  };
  await work.start(piece(1));
  await work.start(piece(2));
  const third = work.start(piece(3));
  const fourth = work.start(piece(4));
  assert.deepEqual(begun, [1, 2]);
  ends[1]?.();
  await third;
  ends[0]?.();
  await fourth;
  assert.deepEqual(begun, [1, 2, 3, 4]);
  const all = work.ended();
  ends[2]?.();
  ends[3]?.();
  await all;
  await work.ended();
});
