import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { FairCapacity } from '#concurrency/fair-capacity.ts';

/** Callers without a name, and such as are not listed any more, are there as well. */
const ALL = ['a', 'b', 'c', 'd', null] as const;

type Caller = (typeof ALL)[number];

const caller = fc.constantFrom(...ALL);
const count = fc.integer({ min: 1, max: 40 });
const reservation = fc.record({ type: fc.constant('reserve' as const), caller, count });
const release = fc.record({ type: fc.constant('release' as const), caller, count });
/** Inputs that wait again, which nobody may refuse. */
const addition = fc.record({ type: fc.constant('add' as const), caller, count });

type Step = { readonly type: 'reserve' | 'release' | 'add'; readonly caller: Caller; readonly count: number };

const setting = fc.record({ limit: fc.integer({ min: 1, max: 60 }), listed: fc.subarray(['a', 'b', 'c']) });
const stepsOf = (...kinds: fc.Arbitrary<Step>[]) => fc.array(fc.oneof(...kinds), { maxLength: 60 });

/** Takes steps, and returns the capacity with the numbers of each caller, which are counted apart. */
function after({ limit, listed }: { limit: number; listed: string[] }, steps: readonly Step[]) {
  const capacity = new FairCapacity(limit, () => listed);
  const used = new Map<Caller, number>(ALL.map((one) => [one, 0]));
  const usedBy = (one: Caller): number => used.get(one) ?? 0;
  for (const { type, caller: one, count: asked } of steps) {
    if (type === 'reserve' && capacity.tryReserve(one, asked) !== null) continue;
    if (type === 'add') capacity.add(one, asked);
    if (type === 'release') capacity.release(one, asked);
    used.set(one, type === 'release' ? Math.max(0, usedBy(one) - asked) : usedBy(one) + asked);
  }
  const total = [...used.values()].reduce((sum, units) => sum + units, 0);
  const part = Math.floor(limit / 2 / Math.max(1, listed.length));
  const partOf = (one: Caller): number => (one !== null && listed.includes(one) ? part : 0);
  return { capacity, total, usedBy, partOf };
}

describe('a fair capacity', () => {
  test('never has more reserved than its limit, and counts what it granted', () => {
    fc.assert(
      fc.property(setting, stepsOf(reservation, release), (given, steps) => {
        const { capacity, total } = after(given, steps);
        assert.equal(capacity.used, total);
        assert(total <= given.limit);
      }),
    );
  });

  test('never refuses a caller what fits into its own part, whatever the others have, also beyond the limit', () => {
    fc.assert(
      fc.property(setting, stepsOf(reservation, release, addition), caller, (given, steps, one) => {
        const { capacity, usedBy, partOf } = after(given, steps);
        const left = partOf(one) - usedBy(one);
        if (left > 0) assert.equal(capacity.tryReserve(one, left), null);
      }),
    );
  });

  test('lets a caller have all but the parts of the others, which are half together, rounded down', () => {
    fc.assert(
      fc.property(setting, caller, ({ limit, listed }, one) => {
        const others = listed.filter((other) => other !== one);
        const kept = others.length * Math.floor(limit / 2 / Math.max(1, listed.length));
        const capacity = new FairCapacity(limit, () => listed);
        assert.equal(capacity.tryReserve(one, limit - kept + 1)?.reason, 'never-fits');
        assert.equal(capacity.tryReserve(one, limit - kept), null);
        assert.equal(capacity.tryReserve(one, 1)?.reason, kept > 0 ? 'caller-limit' : 'full');
      }),
    );
  });

  test('refuses what does not fit, says what does, and changes nothing by that', () => {
    fc.assert(
      fc.property(setting, stepsOf(reservation, release, addition), caller, count, (given, steps, one, asked) => {
        const { capacity, total, usedBy } = after(given, steps);
        const refusal = capacity.tryReserve(one, asked);
        if (refusal === null) return;
        assert.equal(capacity.used, total);
        assert.equal(refusal.used, usedBy(one));
        assert(asked > refusal.free);
        assert.equal(refusal.reason === 'never-fits', asked > refusal.limit);
        if (refusal.free > 0) assert.equal(capacity.tryReserve(one, refusal.free), null);
      }),
    );
  });

  test('is full where nothing is kept for others; else the limit is the one of the caller', () => {
    fc.assert(
      fc.property(setting, stepsOf(reservation, release, addition), caller, count, (given, steps, one, asked) => {
        const { capacity, usedBy, partOf } = after(given, steps);
        const refusal = capacity.tryReserve(one, asked);
        if (refusal === null || refusal.reason === 'never-fits') return;
        const isKept = ALL.some((other) => other !== one && usedBy(other) < partOf(other));
        assert.equal(refusal.reason, isKept ? 'caller-limit' : 'full');
      }),
    );
  });

  test('is one pool where no callers are listed', () => {
    fc.assert(
      fc.property(setting, stepsOf(reservation, release), caller, count, ({ limit }, steps, one, asked) => {
        const { capacity, total } = after({ limit, listed: [] }, steps);
        const refusal = capacity.tryReserve(one, asked);
        const expected = asked > limit ? 'never-fits' : total + asked > limit ? 'full' : undefined;
        assert.equal(refusal?.reason, expected);
      }),
    );
  });

  test('goes on from numbers that were counted elsewhere', () => {
    const capacity = new FairCapacity(8, () => ['a', 'b', 'a']);
    capacity.add('a', 5);
    capacity.correct(
      new Map([
        ['gone', 3],
        ['a', 3],
      ]),
    );
    assert.equal(capacity.used, 6);
    assert.equal(capacity.tryReserve('a', 1)?.reason, 'caller-limit');
    assert.equal(capacity.tryReserve('gone', 1)?.reason, 'caller-limit');
    assert.equal(capacity.tryReserve('b', 2), null);
    assert.equal(capacity.tryReserve('b', 1)?.reason, 'full');
  });
});
