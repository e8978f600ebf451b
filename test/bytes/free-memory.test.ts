import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { freeMemory } from '#bytes/buffers.ts';

describe('freed memory', () => {
  test('is gone where the bytes were the only view of it, also when it is freed again', () => {
    const bytes = Buffer.allocUnsafeSlow(100);
    freeMemory(bytes);
    freeMemory(bytes);
    assert.equal(bytes.length, 0);
  });

  test('stays where there may be other views of it', () => {
    const whole = Buffer.alloc(100, 7);
    freeMemory(whole.subarray(10, 20));
    freeMemory(Buffer.from(new SharedArrayBuffer(100)));
    assert.deepEqual(whole, Buffer.alloc(100, 7));
  });
});
