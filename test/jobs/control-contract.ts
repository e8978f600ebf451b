import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { NO_PROGRESS, type Submission } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-ids.ts';
import { cancelledEntry, type ResultEntry } from '#jobs/result-entries.ts';
import { type JobStore, type LeasedInput, MAX_CALLBACK_PAUSE_MS } from '#jobs/store/job-store.ts';
import { pruneAllJobs } from '#jobs/store/maintenance.ts';

import { type DatabaseFor, leased, release, storeOpener, succeed } from '../support/jobs/leases.ts';
import { resultsOf, scripts, shared } from '../support/jobs/test-jobs.ts';

const ids = new JobIds();
const LEASE_MS = 60_000;

/** The contract of `JobStore` for cancelling, listing, idempotency keys, callbacks and presigned URLs. */
export function describeJobControl(engineName: string, databaseFor: DatabaseFor) {
  const openStore = storeOpener(databaseFor);
  /** For tests that look at their own jobs only. */
  const sharedStore = shared(openStore);

  async function submitted(store: JobStore, inputs: readonly string[], more: Partial<Submission> = {}) {
    const jobId = ids.next();
    const known = await store.submitJob({ ...scripts(inputs), ...more, jobId, queuedAt: new Date() });
    return known?.jobId ?? jobId;
  }

  async function started(store: JobStore, jobId: string): Promise<LeasedInput> {
    const [lease] = await leased(store, jobId);
    assert(lease !== undefined);
    return lease;
  }

  /** Submits a job and ends it. */
  async function endedJob(store: JobStore, more: Partial<Submission> = {}): Promise<string> {
    const jobId = await submitted(store, ['a'], more);
    await succeed(store, await started(store, jobId));
    return jobId;
  }

  describe(`cancelling on ${engineName}`, () => {
    test('finishes a job at once when none of its inputs is running', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b']);
      const { finishedJob, ...cancellation } = (await store.cancelJob(jobId)) ?? assert.fail();
      assert.deepEqual(cancellation, { caller: null, changed: true, inputCount: 2 });
      assert.deepEqual([finishedJob?.jobId, finishedJob?.status], [jobId, 'failed']);
      const job = await store.findJob(jobId);
      assert.equal(job?.status, 'failed');
      assert.deepEqual(resultsOf(job), [
        { ...cancelledEntry(0), input_name: 'a' },
        { ...cancelledEntry(1), input_name: 'b' },
      ]);
      assert.deepEqual(await leased(store, jobId), []);
      const unchanged = { caller: null, changed: false, finishedJob: null, inputCount: 0 };
      assert.deepEqual(await store.cancelJob(jobId), unchanged);
    });

    test('leaves running inputs to their workers, and the job finishes with them', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b', 'c']);
      const [first, second] = await leased(store, jobId, 2);
      assert(first !== undefined && second !== undefined);
      const cancellation = await store.cancelJob(jobId);
      assert.deepEqual(cancellation, { caller: null, changed: true, finishedJob: null, inputCount: 1 });
      assert.deepEqual(await store.cancelledAmong([jobId, ids.next()]), [jobId]);
      assert.deepEqual(await release(store, first), { input: 'finished', jobFinished: false });
      assert.deepEqual(await succeed(store, second), { input: 'finished', jobFinished: true });
      const job = await store.findJob(jobId);
      assert.deepEqual(
        [job?.status, ...resultsOf(job).map((entry) => entry.status)],
        ['failed', 'cancelled', 'succeeded', 'cancelled'],
      );
    });

    test('fails a job although all its running inputs succeed', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a']);
      const lease = await started(store, jobId);
      await store.cancelJob(jobId);
      await succeed(store, lease);
      assert.equal((await store.findJob(jobId))?.status, 'failed');
    });

    test('does not requeue an input whose process exited', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a']);
      const lease = await started(store, jobId);
      await store.cancelJob(jobId);
      assert.deepEqual(await release(store, lease, { reason: 'process-exited' }), {
        input: 'finished',
        jobFinished: true,
      });
      assert.deepEqual(resultsOf(await store.findJob(jobId)), [{ ...cancelledEntry(0), input_name: 'a' }]);
    });

    test('does not wait for the pause of an input that failed for a moment', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a']);
      const lease = await started(store, jobId);
      await store.cancelJob(jobId);
      const failure = { reason: 'transient-failure', retryAt: Date.now() + 1e6 } as const;
      assert.deepEqual(await release(store, lease, failure), { input: 'finished', jobFinished: true });
    });

    test('returns null for an unknown job', async () => {
      assert.equal(await (await sharedStore()).cancelJob(ids.next()), null);
    });
  });

  describe(`callers on ${engineName}`, () => {
    test('find, list and cancel the jobs that are recorded under their name', async (t) => {
      const store = await openStore(t);
      const own = await submitted(store, ['a'], { caller: 'newsroom' });
      const others = await submitted(store, ['a'], { caller: 'archive' });
      const nobodys = await submitted(store, ['a']);
      const scope = { caller: 'newsroom' };
      assert.equal((await store.findJob(own, scope))?.caller, 'newsroom');
      for (const jobId of [others, nobodys]) {
        assert.equal(await store.findJob(jobId, scope), null);
        assert.equal(await store.cancelJob(jobId, scope), null);
        assert.equal((await store.findJob(jobId))?.status, 'queued');
      }
      const idsOf = async (asked: Partial<Parameters<JobStore['listJobs']>[0]>) =>
        (await store.listJobs({ limit: 10, ...asked })).jobs.map((job) => job.job_id);
      assert.deepEqual(await idsOf(scope), [own]);
      assert.deepEqual(await idsOf({ ...scope, status: 'succeeded' }), []);
      assert.deepEqual(await idsOf({ caller: '' }), []);
      assert.deepEqual(await idsOf({}), [nobodys, others, own]);
      const cancellation = await store.cancelJob(own, scope);
      assert.deepEqual([cancellation?.caller, cancellation?.finishedJob?.caller], ['newsroom', 'newsroom']);
      assert.equal((await store.findJob(nobodys))?.caller, undefined);
    });
  });

  describe(`following on ${engineName}`, () => {
    test('returns the finished inputs, and their entries', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b', 'c']);
      await succeed(store, await started(store, jobId));
      assert.deepEqual(await store.finishedInputs(jobId), [0]);
      await store.cancelJob(jobId);
      assert.deepEqual(await store.finishedInputs(jobId), [0, 1, 2]);
      assert.deepEqual(
        JSON.parse(await store.resultEntries(jobId, [2, 0])).map((entry: ResultEntry) => [
          entry.input_index,
          entry.status,
        ]),
        [
          [0, 'succeeded'],
          [2, 'cancelled'],
        ],
      );
      assert.equal(await store.resultEntries(ids.next(), [0]), '[]');
      assert.equal(await store.resultEntries(jobId, [0], { caller: 'another' }), '[]');
    });

    test('counts queued and running inputs, and finds the oldest queued job', async (t) => {
      const store = await openStore(t);
      const before = Date.now();
      const jobId = await submitted(store, ['a', 'b', 'c', 'd']);
      await leased(store, jobId);
      await leased(store, jobId, 2, 'reserved');
      const { oldestQueuedAt, ...counts } = await store.queueState();
      assert.deepEqual(counts, { queued: 1, reserved: 2, running: 1, callbacks: 0 });
      assert.ok(Date.parse(oldestQueuedAt ?? '') >= before);
      await store.cancelJob(jobId);
      assert.equal((await store.queueState()).oldestQueuedAt, null);
    });

    test('lists the newest first, of one status and from one job on', async (t) => {
      const store = await openStore(t);
      const jobIds = [await endedJob(store), await submitted(store, ['a']), await endedJob(store)].reverse();
      const listed = async (asked: Parameters<JobStore['listJobs']>[0]) => {
        const { jobs, more } = await store.listJobs(asked);
        return [...jobs.map((job) => jobIds.indexOf(job.job_id)), more];
      };
      assert.deepEqual(await listed({ limit: 5 }), [0, 1, 2, false]);
      assert.deepEqual(await listed({ limit: 2 }), [0, 1, true]);
      assert.deepEqual(await listed({ limit: 2, before: jobIds[1] ?? '' }), [2, false]);
      assert.deepEqual(await listed({ limit: 5, status: 'succeeded' }), [0, 2, false]);
    });

    test('reports a finished job', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a'], { traceParent: 'the trace' });
      const lease = await started(store, jobId);
      const result = { lease, entry: cancelledEntry(0), progress: NO_PROGRESS, digest: null };
      const { finishedJob: report } = await store.finishInput(result);
      assert.deepEqual(
        [report?.operation, report?.status, report?.inputs, report?.traceParent],
        ['c2pa-video', 'failed', 1, 'the trace'],
      );
      assert.ok((report?.finishedAtMs ?? 0) >= (report?.queuedAtMs ?? Number.NaN));
    });
  });

  describe(`idempotency keys on ${engineName}`, () => {
    test('stand for one job', async (t) => {
      const store = await openStore(t);
      const idempotency = { key: 'k', digest: 'd' };
      const jobId = await submitted(store, ['a'], { idempotency });
      assert.equal(await submitted(store, ['other'], { idempotency: { key: 'k', digest: 'e' } }), jobId);
      assert.deepEqual(await store.findByIdempotencyKey('k'), { jobId, status: 'queued', digest: 'd' });
      assert.equal((await store.queueState()).queued, 1);
      assert.equal(await store.findByIdempotencyKey('other'), null);
    });

    test('stand for one job when they arrive at the same time', async (t) => {
      const store = await openStore(t);
      const idempotency = { key: 'k', digest: 'd' };
      const jobIds = await Promise.all(Array.from({ length: 10 }, () => submitted(store, ['a'], { idempotency })));
      assert.equal(new Set(jobIds).size, 1);
      assert.equal((await store.queueState()).queued, 1);
    });

    test('are free again when their job is deleted', async () => {
      const store = await sharedStore();
      await endedJob(store, { idempotency: { key: 'k', digest: 'd' } });
      await pruneAllJobs(store, new Date(Date.now() + 1));
      assert.equal(await store.findByIdempotencyKey('k'), null);
    });
  });

  describe(`callbacks on ${engineName}`, () => {
    const callbackUrl = 'https://example.com/hook?token=hush';

    test('are due when their job is finished, not before', async (t) => {
      const store = await openStore(t);
      const jobId = await submitted(store, ['a'], { callbackUrl });
      assert.deepEqual(await store.leaseCallbacks(10, LEASE_MS), []);
      await succeed(store, await started(store, jobId));
      const [taken] = await store.leaseCallbacks(10, LEASE_MS);
      assert.deepEqual([taken?.jobId, taken?.url, taken?.attempts], [jobId, callbackUrl, 1]);
      assert.equal((await store.queueState()).callbacks, 1);
    });

    test('are due when their job is cancelled', async (t) => {
      const store = await openStore(t);
      await store.cancelJob(await submitted(store, ['a'], { callbackUrl }));
      assert.equal((await store.leaseCallbacks(10, LEASE_MS)).length, 1);
    });

    test('are leased by one sender at a time, and again after the lease', async (t) => {
      const store = await openStore(t);
      await endedJob(store, { callbackUrl });
      const takers = await Promise.all(Array.from({ length: 5 }, () => store.leaseCallbacks(10, 1)));
      assert.ok(takers.flat().length >= 1);
      await sleep(5);
      const [again] = await store.leaseCallbacks(10, LEASE_MS);
      assert.ok((again?.attempts ?? 0) >= 2);
      assert.deepEqual(await store.leaseCallbacks(10, LEASE_MS), []);
    });

    test('are due again after a postponement, and never after they are closed', async (t) => {
      const store = await openStore(t);
      const jobId = await endedJob(store, { callbackUrl });
      await store.leaseCallbacks(10, LEASE_MS);
      await store.postponeCallback(jobId, -1, 'sent');
      assert.equal((await store.leaseCallbacks(10, LEASE_MS))[0]?.attempts, 2);
      await store.postponeCallback(jobId, -1, 'unsent');
      assert.equal((await store.leaseCallbacks(10, LEASE_MS))[0]?.attempts, 2);
      await store.closeCallback(jobId, 'delivered');
      await store.postponeCallback(jobId, -1, 'sent');
      assert.deepEqual(await store.leaseCallbacks(10, LEASE_MS), []);
      assert.equal((await store.queueState()).callbacks, 0);
    });

    test('are due where the clock was set back by hours since they were postponed', async (t) => {
      const store = await openStore(t);
      const jobId = await endedJob(store, { callbackUrl });
      await store.leaseCallbacks(10, LEASE_MS);
      await store.postponeCallback(jobId, MAX_CALLBACK_PAUSE_MS, 'sent');
      assert.deepEqual(await store.leaseCallbacks(10, LEASE_MS), []);
      await store.postponeCallback(jobId, 2 * MAX_CALLBACK_PAUSE_MS, 'sent');
      assert.equal((await store.leaseCallbacks(10, LEASE_MS))[0]?.attempts, 2);
      assert.deepEqual(await store.leaseCallbacks(10, LEASE_MS), []);
    });

    test('keep their job until they are closed', async (t) => {
      const store = await openStore(t);
      const jobId = await endedJob(store, { callbackUrl });
      const later = new Date(Date.now() + 1000);
      assert.equal(await pruneAllJobs(store, later), 0);
      await store.closeCallback(jobId, 'given_up');
      assert.equal(await pruneAllJobs(store, later), 1);
    });
  });

  describe(`presigned URLs on ${engineName}`, () => {
    const presigned = (name: string) => `https://example.com/${name}?X-Signature=hush`;
    const request: Submission['request'] = {
      inputs: [
        { type: 'remote_file_url', url: presigned('a'), filename_hint: 'a.mp4?' },
        { type: 'remote_file_url', url: 'https://example.com/b#hush' },
        { type: 'local_file_path', path: '/a?b' },
      ],
      params: {
        assertions: [{ label: 'x', data: { url: 'https://example.com/?kept' } }],
        parent: { type: 'file', source: { type: 'remote_file_url', url: presigned('parent') } },
        parent_overrides: [
          { input_index: 1, parent: { type: 'file', source: { type: 'remote_file_url', url: presigned('other') } } },
        ],
      },
    };

    async function endAll(store: JobStore, jobId: string): Promise<void> {
      for (const lease of await leased(store, jobId, 3)) await succeed(store, lease);
    }

    test('are kept whole while the job needs them', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, [], { request });
      await succeed(store, await started(store, jobId));
      assert.deepEqual((await store.pathsOfJob(jobId)).inputs, request.inputs);
    });

    test('lose their query when the job finishes, and nothing else changes', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, [], { request });
      await endAll(store, jobId);
      const { inputs, params, outputs } = await store.pathsOfJob(jobId);
      assert.deepEqual(inputs, [
        { type: 'remote_file_url', url: 'https://example.com/a', filename_hint: 'a.mp4?' },
        { type: 'remote_file_url', url: 'https://example.com/b' },
        { type: 'local_file_path', path: '/a?b' },
      ]);
      assert.deepEqual((params as { assertions: unknown }).assertions, [
        { label: 'x', data: { url: 'https://example.com/?kept' } },
      ]);
      assert.ok(!JSON.stringify(params).includes('hush'));
      assert.equal(outputs.length, 3);
      assert.equal((await store.findJob(jobId))?.status, 'succeeded');
    });

    test('lose it in a job that is cancelled, and in one of thousands of inputs', async () => {
      const store = await sharedStore();
      const many = Array.from({ length: 1100 }, (_, index) => ({
        type: 'remote_file_url' as const,
        url: presigned(String(index)),
      }));
      const jobId = await submitted(store, [], { request: { inputs: many } });
      await store.cancelJob(jobId);
      const { inputs } = await store.pathsOfJob(jobId);
      assert.equal(inputs.length, 1100);
      assert.ok(!JSON.stringify(inputs).includes('hush'));
      assert.equal(resultsOf(await store.findJob(jobId)).length, 1100);
    });
  });
}
