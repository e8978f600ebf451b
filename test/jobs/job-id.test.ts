import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JobIds } from '#jobs/job-ids.ts';

describe('job ids', () => {
  test('are version 7 UUIDs that begin with the time', () => {
    const id = new JobIds().next(0x0197f3a25d5c);
    assert.match(id, /^0197f3a2-5d5c-7000-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test('sort in the order in which they were made, whatever the clock does', () => {
    const ids = new JobIds();
    const clock = [...Array(10_000).fill(1000), 999, 500, 1001, 2000, 1500];
    const made = clock.map((nowMs) => ids.next(nowMs));
    assert.deepEqual([...made].sort(), made);
    assert.equal(new Set(made).size, made.length);
  });
});
