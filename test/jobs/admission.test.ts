import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Admission } from '#jobs/scheduling/admission.ts';
import type { QueuedCounts } from '#jobs/store/job-store.ts';

const queued = (count: number): QueuedCounts => new Map([['newsroom', count]]);

/** Takes jobs that sign nothing while nothing is away; a recount reads `countQueued`. */
function admissionOver(countQueued: () => Promise<QueuedCounts>) {
  const admission = new Admission({
    ...{ capacity: 10, callers: () => [], outages: () => [], nodes: { otherNodes: () => [] } },
    store: { countQueued, countNeeding: async () => 0 },
  });
  const admit = (count: number) =>
    admission.admit({ caller: 'newsroom', identity: null, needs: Array(count).fill([]) });
  return { admission, admit };
}

describe('a recount of the queue', () => {
  test('keeps what is being recorded, and counts it once when it was', async () => {
    let stored = 1;
    const { admission, admit } = admissionOver(async () => queued(stored));
    const reservation = await admit(3);
    await admission.recount();
    assert.equal(admission.waiting, 4);
    admission.settle(reservation, true);
    stored = 4;
    await admission.recount();
    assert.equal(admission.waiting, 4);
  });

  test('keeps what is recorded while it is under way, and not what fails', async () => {
    const { admission, admit } = admissionOver(async () => {
      admission.settle(before, true);
      admission.settle(failed, false);
      admission.settle(await admit(4), true);
      return queued(0);
    });
    const before = await admit(1);
    const failed = await admit(2);
    await admission.recount();
    assert.equal(admission.waiting, 5);
  });

  test('changes nothing where the store cannot be read', async () => {
    const { admission, admit } = admissionOver(() => Promise.reject(new Error('the store is gone')));
    admission.settle(await admit(3), true);
    await assert.rejects(admission.recount());
    assert.equal(admission.waiting, 3);
  });
});
