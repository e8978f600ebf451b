import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { itemAt } from '#errors/assert.ts';

describe('an item at an index', () => {
  it('is taken from lists and typed arrays, also where it is undefined or zero', () => {
    assert.equal(itemAt(['a', 'b'], 1), 'b');
    assert.equal(itemAt([undefined], 0), undefined);
    assert.equal(itemAt(new Uint8Array([0, 7]), 0), 0);
    assert.equal(itemAt(new BigInt64Array([7n]), 0), 7n);
  });

  it('must exist', () => {
    for (const index of [-1, 1, 0.5, Number.NaN]) assert.throws(() => itemAt(['a'], index), /no item/);
  });
});
