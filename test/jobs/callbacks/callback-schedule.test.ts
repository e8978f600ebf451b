import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { nextAttemptAt } from '#jobs/callback-sender.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const FIRST_PAUSE_MS = 5_000;

/** When a callback that always fails is sent, in milliseconds after the end of its job. */
function attemptsOf(random: () => number): number[] {
  const times = [0];
  for (;;) {
    const nowMs = times.at(-1) ?? 0;
    const failed = { attempts: times.length, finishedAtMs: 0, firstPauseMs: FIRST_PAUSE_MS };
    const nextMs = nextAttemptAt(failed, nowMs, random());
    if (nextMs === null) return times;
    times.push(nextMs);
  }
}

describe('callbacks that fail', () => {
  test('are tried again ever more slowly, for a day and no longer', () => {
    fc.assert(
      fc.property(fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (randoms) => {
        const times = attemptsOf(() => randoms.next().value ?? 0);
        assert.ok((times.at(-1) ?? 0) <= DAY_MS);
        assert.ok((times.at(-1) ?? 0) > DAY_MS - 2 * 60 * 60 * 1000);
        assert.ok(times.length > 20 && times.length < 60);
        for (const [index, time] of times.entries()) assert.ok(index === 0 || time > (times[index - 1] ?? 0));
      }),
    );
  });

  test('are tried again within seconds at first', () => {
    const failed = { attempts: 1, finishedAtMs: 0, firstPauseMs: FIRST_PAUSE_MS };
    assert.equal(nextAttemptAt(failed, 1000, 0), 6000);
    assert.equal(nextAttemptAt(failed, 1000, 1), 5000);
  });
});
