import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { LeaseTimer, leaseClock } from '#jobs/queue/lease-timer.ts';

const HOUR_MS = 3600 * 1000;

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

  test('is timed by a clock that goes on when the one on the wall is set back', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 10 * HOUR_MS });
    const clock = leaseClock();
    const start = clock();
    t.mock.timers.setTime(15 * HOUR_MS);
    assert(clock() > start + 4 * HOUR_MS, 'a suspension was not noticed');
    t.mock.timers.setTime(9 * HOUR_MS);
    const setBack = clock();
    await setImmediate();
    assert(clock() > setBack, 'the clock stands still');
    t.mock.timers.setTime(10 * HOUR_MS);
    assert(clock() > setBack + HOUR_MS / 2, 'a later suspension was not noticed');
  });
});
