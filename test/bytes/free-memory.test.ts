import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { freeMemory } from '#bytes/free-memory.ts';

describe('memory that is given back', () => {
  test('is gone where the bytes were all of it, also when it is given back again', () => {
    const bytes = Buffer.allocUnsafeSlow(100);
    freeMemory(bytes);
    freeMemory(bytes);
    assert.equal(bytes.length, 0);
  });

  test('stays where others may have a view of it', () => {
    const whole = Buffer.alloc(100, 7);
    freeMemory(whole.subarray(10, 20));
    freeMemory(Buffer.from(new SharedArrayBuffer(100)));
    assert.deepEqual(whole, Buffer.alloc(100, 7));
  });
});
