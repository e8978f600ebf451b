import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { batchAssertions, CheckQueue } from '#provenance/assertion-checker.ts';

interface NamedCheck {
  readonly name: string;
  readonly isSmall: boolean;
  remainingBatches: number;
}

const large = (name: string): NamedCheck => ({ name, isSmall: false, remainingBatches: 20 });
const small = (name: string): NamedCheck => ({ name, isSmall: true, remainingBatches: 1 });

/** Runs batches until no check waits. Returns the checks in the order in which they finished. */
function endsOf(queue: CheckQueue<NamedCheck>): string[] {
  const ends: string[] = [];
  for (let check = queue.next(); check !== undefined; check = queue.next()) {
    check.remainingBatches -= 1;
    if (check.remainingBatches === 0) ends.push(check.name);
    else queue.add(check);
  }
  return ends;
}

describe('the queue of checks', () => {
  test('lets small checks overtake large ones', () => {
    const queue = new CheckQueue<NamedCheck>();
    for (let index = 0; index < 30; index += 1) queue.add(large(`large ${index}`));
    queue.add(small('small'));
    assert.equal(endsOf(queue)[0], 'small');
  });

  test('gets the oldest large check on, however many small ones come', () => {
    const queue = new CheckQueue<NamedCheck>();
    const first = large('first');
    queue.add(first);
    queue.add(large('second'));
    for (let index = 0; index < 40; index += 1) {
      queue.add(small(`small ${index}`));
      const check = queue.next();
      if (check === undefined || check.isSmall) continue;
      check.remainingBatches -= 1;
      if (check.remainingBatches > 0) queue.add(check);
    }
    assert.equal(first.remainingBatches, 0);
  });

  test('hands out small checks alone where only those are asked for, and none that was taken out', () => {
    const queue = new CheckQueue<NamedCheck>();
    const [one, two] = [small('one'), small('two')];
    for (const check of [large('large'), one, two]) queue.add(check);
    queue.remove(one);
    assert.equal(queue.nextSmall(), two);
    assert.equal(queue.nextSmall(), undefined);
    assert.equal(queue.next()?.name, 'large');
    assert.equal(queue.next(), undefined);
  });
});

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
