import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { batchAssertions } from '#provenance/assertion-checker.ts';

describe('assertions of a request', () => {
  const statements = (count: number) => ({
    assertions: Array.from({ length: count }, (_, index) => ({ label: `a.b${index}`, data: 1 })),
    actions: [],
  });

  test('are divided by number', () => {
    const { batches, isSmall } = batchAssertions(statements(250), new Array(250).fill(1));
    assert.deepEqual(
      batches.map(({ start, assertions }) => [start, assertions.length]),
      [
        [0, 100],
        [100, 100],
        [200, 50],
      ],
    );
    assert.equal(isSmall, false);
    assert.equal(batchAssertions(statements(100), new Array(100).fill(1)).isSmall, true);
  });

  test('are divided by size, and one that is large stands alone', () => {
    const { batches } = batchAssertions(statements(5), [10, 5_000_000, 10, 600_000, 600_000]);
    assert.deepEqual(
      batches.map(({ start, assertions }) => [start, assertions.length]),
      [
        [0, 1],
        [1, 1],
        [2, 2],
        [4, 1],
      ],
    );
    assert.equal(batchAssertions(statements(1), [100_000]).isSmall, false);
  });

  test('are followed by its actions, with what a watermark is bound to', () => {
    const actions = [{ action: 'c2pa.watermarked.bound' }];
    const binding = { label: 'c2pa.soft-binding', data: 1 };
    const assertions = [...statements(1).assertions, binding];
    assert.deepEqual(batchAssertions({ assertions, actions }, [1, 1]).batches, [
      { start: 0, assertions, actions: [] },
      { start: 0, assertions: [binding], actions },
    ]);
    assert.deepEqual(batchAssertions({ assertions: [], actions: [{ action: 'c2pa.edited' }] }, []).batches, [
      { start: 0, assertions: [], actions: [{ action: 'c2pa.edited' }] },
    ]);
  });
});
