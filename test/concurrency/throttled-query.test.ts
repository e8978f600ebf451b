import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ThrottledQuery } from '#concurrency/throttled-query.ts';

/** Looks that take as long as the test says, by a clock that moves with them. */
function looksThatTake(costMs: number) {
  let atMs = 1000;
  let count = 0;
  const look = new ThrottledQuery(
    async () => {
      atMs += costMs;
      count += 1;
      return count;
    },
    () => atMs,
  );
  const pass = (ms: number): void => {
    atMs += ms;
  };
  return { look, pass };
}

describe('a look that is taken sparingly', () => {
  test('is taken whenever somebody asks, as long as it costs next to nothing', async () => {
    const { look } = looksThatTake(1);
    assert.deepEqual([await look.value(), await look.freshValue(), await look.value()], [1, 2, 3]);
  });

  test('is taken again only after many times what it took', async () => {
    const { look, pass } = looksThatTake(30);
    assert.equal(await look.value(), 1);
    pass(1_000);
    assert.deepEqual([await look.value(), await look.freshValue()], [1, undefined]);
    pass(1_000);
    assert.deepEqual([await look.freshValue(), await look.value()], [2, 2]);
  });

  test('is taken again after five seconds at most, however long it took', async () => {
    const { look, pass } = looksThatTake(60_000);
    assert.equal(await look.value(), 1);
    pass(4_999);
    assert.equal(await look.freshValue(), undefined);
    pass(1);
    assert.equal(await look.freshValue(), 2);
  });

  test('is taken once for all who ask at the same time', async () => {
    const { look } = looksThatTake(1);
    assert.deepEqual(await Promise.all([look.value(), look.freshValue(), look.value()]), [1, 1, 1]);
  });

  test('that fails is taken again', async () => {
    let fails = true;
    const look = new ThrottledQuery(async () => {
      if (fails) throw new Error('out of reach');
      return 5;
    });
    await assert.rejects(look.value());
    fails = false;
    assert.equal(await look.value(), 5);
  });
});
