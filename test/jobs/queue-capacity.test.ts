import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { QueueCapacity } from '#jobs/scheduling/queue-capacity.ts';
import type { QueuedCounts } from '#jobs/store/job-store.ts';

const queued = (count: number): QueuedCounts => new Map([['newsroom', count]]);

describe('a recount of the queue', () => {
  test('keeps what is being recorded, and counts it once when it was', async () => {
    const capacity = new QueueCapacity(10, () => []);
    const reservation = capacity.reserve('newsroom', 3);
    await capacity.recount(async () => queued(1));
    assert.equal(capacity.waiting, 4);
    capacity.settle(reservation, true);
    await capacity.recount(async () => queued(4));
    assert.equal(capacity.waiting, 4);
  });

  test('keeps what is recorded while it is under way, and not what fails', async () => {
    const capacity = new QueueCapacity(10, () => []);
    const before = capacity.reserve('newsroom', 1);
    const failed = capacity.reserve('newsroom', 2);
    await capacity.recount(async () => {
      capacity.settle(before, true);
      capacity.settle(failed, false);
      capacity.settle(capacity.reserve('newsroom', 4), true);
      return queued(0);
    });
    assert.equal(capacity.waiting, 5);
  });

  test('changes nothing where the store cannot be read', async () => {
    const capacity = new QueueCapacity(10, () => []);
    capacity.settle(capacity.reserve('newsroom', 3), true);
    await assert.rejects(capacity.recount(() => Promise.reject(new Error('the store is gone'))));
    assert.equal(capacity.waiting, 3);
  });
});
