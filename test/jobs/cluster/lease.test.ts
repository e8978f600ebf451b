import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LeaseTimer, leaseClock } from '#jobs/cluster/leased-inputs.ts';

describe('a lease', () => {
  test('is over by its own clock, counted from before it was asked for', () => {
    let now = 1_000;
    const lease = new LeaseTimer(() => now, 900, 500);
    assert(lease.covers(400));
    assert(!lease.covers(401));
    now = 1_400;
    assert(lease.covers(0));
    now = 1_401;
    assert(!lease.covers(0));
  });

  test('holds on from a renewal, and never shorter for one that was asked for before', async () => {
    const now = 1_000;
    const lease = new LeaseTimer(() => now, 1_000, 500);
    const { renewed } = lease;
    lease.renew(900);
    await renewed;
    assert(lease.covers(500));
    lease.renew(1_200);
    assert(lease.covers(700));
  });

  test('is timed by a clock that never goes back', () => {
    const clock = leaseClock();
    const looks = Array.from({ length: 1_000 }, clock);
    assert.deepEqual(
      looks,
      looks.toSorted((a, b) => a - b),
    );
  });
});
