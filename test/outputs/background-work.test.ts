import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BackgroundWork } from '#outputs/local/background-work.ts';

/** Pieces of work that end when they are told to, and the numbers of those that have begun. */
function piecesOfWork() {
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  const piece = (number: number) => () => {
    begun.push(number);
    return new Promise<void>((resolve) => ends.push(resolve));
  };
  return { ends, begun, piece };
}

test('so much goes on at once, in the order in which it was asked for', async () => {
  const work = new BackgroundWork({ atOnce: 2, waiting: 0 });
  const { ends, begun, piece } = piecesOfWork();
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

test('callers are held up only where too much waits', async () => {
  const work = new BackgroundWork({ atOnce: 1, waiting: 1 });
  const { ends, begun, piece } = piecesOfWork();
  await work.start(piece(1));
  await work.start(piece(2));
  let isHeldUp = true;
  const third = work.start(piece(3)).then(() => {
    isHeldUp = false;
  });
  await Promise.resolve();
  assert.deepEqual([begun, isHeldUp], [[1], true]);
  ends[0]?.();
  await third;
  assert.deepEqual(begun, [1, 2], 'the third one waits in the place of the second');
});

test('what waits counts as not ended', async () => {
  const work = new BackgroundWork({ atOnce: 1, waiting: 1 });
  const { ends, begun, piece } = piecesOfWork();
  await work.start(piece(1));
  await work.start(piece(2));
  let hasEnded = false;
  const all = work.ended().then(() => {
    hasEnded = true;
  });
  ends[0]?.();
  await new Promise(setImmediate);
  assert.deepEqual([begun, hasEnded], [[1, 2], false]);
  ends[1]?.();
  await all;
});
