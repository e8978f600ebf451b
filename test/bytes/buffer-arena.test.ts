import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BufferArena } from '#bytes/buffers.ts';

test('buffers of an arena do not overlap, and their memory is reused after a reset', () => {
  const sizes = fc.array(fc.integer({ min: 0, max: 700_000 }), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(sizes, (sizesBytes) => {
      const slab = new BufferArena();
      const takeAll = () => sizesBytes.map((sizeBytes, index) => slab.allocate(sizeBytes).fill(index));
      const first = takeAll();
      for (const [index, buffer] of first.entries()) {
        assert.equal(buffer.length, sizesBytes[index]);
        assert.ok(buffer.every((byte) => byte === index));
      }
      slab.reset();
      const second = takeAll();
      assert.ok(second.every((buffer, index) => buffer.buffer === first[index]?.buffer));
    }),
    { numRuns: 30 },
  );
});

test('a buffer larger than a block gets one of its own', () => {
  const slab = new BufferArena();
  slab.allocate(10);
  assert.equal(slab.allocate(5_000_000).length, 5_000_000);
  assert.equal(slab.allocate(10).length, 10);
});

test('a buffer of no bytes may be the first', () => {
  assert.equal(new BufferArena().allocate(0).length, 0);
});
