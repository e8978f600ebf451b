import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NO_PROGRESS, type Submission } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-ids.ts';
import { failedEntry } from '#jobs/result-entries.ts';
import type { JobStore, LeasedInput } from '#jobs/store/job-store.ts';
import { pruneAllJobs } from '#jobs/store/maintenance.ts';
import { type DatabaseFor, finish, leased, storeOpener, succeed as succeedOne } from '../support/jobs/leases.ts';
import { scripts, shared } from '../support/jobs/test-jobs.ts';

const ids = new JobIds();
const LOST = { reason: 'SOURCE_NOT_FOUND', details: { path: '/' }, location: {} } as const;

/** The contract of `JobStore` for retries. */
export function describeRetries(engineName: string, databaseFor: DatabaseFor) {
  const openStore = storeOpener(databaseFor);
  /** For tests that look at their own jobs only. */
  const sharedStore = shared(openStore);

  async function submitted(store: JobStore, more: Partial<Submission> = {}, inputs: readonly string[] = ['a']) {
    const jobId = ids.next();
    await store.submitJob({ ...scripts(inputs), ...more, jobId, queuedAt: new Date() });
    return jobId;
  }

  const fail = (store: JobStore, lease: LeasedInput) => finish(store, lease, failedEntry(lease.inputIndex, LOST));
  const succeed = (store: JobStore, lease: LeasedInput, outputPath: string) =>
    succeedOne(store, lease, NO_PROGRESS, outputPath);

  async function failAll(store: JobStore, jobId: string): Promise<void> {
    for (const lease of await leased(store, jobId, 1000)) await fail(store, lease);
  }

  describe(`retries on ${engineName}`, () => {
    test('get the inputs of a job that did not succeed in order, and all that its request had', async () => {
      const store = await sharedStore();
      const output = { type: 'local', prefix: 'p' } as const;
      const params = { parent_overrides: [{ input_index: 0, parent: null }] };
      const inputs = ['/m/a', '/m/b', '/m/c', '/m/d'].map((path) => ({ type: 'local_file_path' as const, path }));
      const labels = { a: '1' };
      const jobId = await submitted(store, {
        operation: 'verify',
        request: { inputs, output, params },
        caller: 'newsroom',
        clientReference: 'r',
        labels,
      });
      const leases = await leased(store, jobId, 3);
      for (const lease of leases.toReversed()) {
        await (lease.inputIndex === 1 ? succeed(store, lease, '/out') : fail(store, lease));
      }
      assert.equal((await store.findRetriedJob(jobId))?.isFinished, false);
      await store.cancelJob(jobId);
      assert.equal(await store.findRetriedJob(jobId, { caller: 'archive' }), null);
      const job = (await store.findRetriedJob(jobId, { caller: 'newsroom' })) ?? assert.fail();
      const { outputJson, paramsJson, unsuccessful, ...rest } = job;
      const described = { operation: 'verify', caller: 'newsroom', clientReference: 'r', labels };
      assert.deepEqual(rest, { ...described, identity: null, isFinished: true, inputCount: 4 });
      assert.deepEqual([JSON.parse(outputJson), JSON.parse(paramsJson)], [output, params]);
      assert.deepEqual(
        unsuccessful.map(({ inputJson, ...input }) => ({ ...input, input: JSON.parse(inputJson) })),
        (
          [
            [0, 'a', 'failed', 'SOURCE_NOT_FOUND'],
            [2, 'c', 'failed', 'SOURCE_NOT_FOUND'],
            [3, 'd', 'cancelled', null],
          ] as const
        ).map(([inputIndex, name, status, reason]) => ({
          ...{ inputIndex, name, status, reason, isErased: false, isRetried: false },
          input: inputs[inputIndex],
        })),
      );
    });

    test('are shown with the job that they retry, also after that was deleted', async () => {
      const store = await sharedStore();
      const first = await submitted(store);
      await failAll(store, first);
      const second = await submitted(store, { retriedFrom: first });
      await pruneAllJobs(store, new Date(Date.now() + 1));
      assert.equal(await store.findRetriedJob(first), null);
      assert.equal((await store.findJob(second))?.retried_from, first);
      assert.equal((await store.listJobs({ limit: 1 })).jobs[0]?.retried_from, first);
    });

    test('leave alone what the jobs read and wrote that they retry', async () => {
      const store = await sharedStore();
      const first = await submitted(store, {}, ['a', 'b', 'c']);
      const [a, b, c] = await leased(store, first, 3);
      assert(a !== undefined && b !== undefined && c !== undefined);
      await succeed(store, a, '/out/a');
      for (const lease of [b, c]) await fail(store, lease);
      const second = await submitted(store, { retriedFrom: first }, ['b', 'c']);
      const [again, last] = await leased(store, second, 2);
      assert(again !== undefined && last !== undefined);
      await succeed(store, again, '/out/b');
      await fail(store, last);
      const third = await submitted(store, { retriedFrom: second }, ['c']);
      const { inputs, outputs, retried } = await store.pathsOfJob(third);
      assert.deepEqual([inputs.length, outputs], [1, []]);
      assert.deepEqual(
        retried.map((job) => [job.inputs.length, job.outputs.map(({ outputPath }) => outputPath)]),
        [
          [2, ['/out/b']],
          [3, ['/out/a']],
        ],
      );
      const [lease] = await leased(store, third);
      assert.equal(lease?.request, null, 'its paths are those of several jobs');
    });

    const once = (inputIndexes: readonly number[]) => ({ inputIndexes, isOnce: true });
    const retriesOf = async (store: JobStore, jobId: string) =>
      ((await store.findRetriedJob(jobId)) ?? assert.fail()).unsuccessful.map(({ isRetried }) => isRetried);

    test('take inputs that no other has, all of them or none', async () => {
      const store = await sharedStore();
      const first = await submitted(store, {}, ['a', 'b', 'c']);
      await failAll(store, first);
      const retry = (inputIndexes: readonly number[]) => {
        const more = { retriedFrom: first, retriedInputs: once(inputIndexes), jobId: ids.next(), queuedAt: new Date() };
        return store.submitJob({ ...scripts(inputIndexes.map(String)), ...more }).then((known) => [more.jobId, known]);
      };
      const answers = await Promise.all([retry([0, 1]), retry([1]), retry([0, 1])]);
      const made = answers.filter(([, known]) => known === null).map(([jobId]) => jobId);
      assert.equal(made.length, 1);
      for (const [jobId, known] of answers) {
        if (known === null) continue;
        assert.deepEqual(known, { jobId: made[0], status: 'queued', digest: '' });
        assert.equal(await store.findJob(String(jobId)), null);
      }
      assert.equal((await retriesOf(store, first))[2], false);
      assert.notEqual((await retry([1, 2]))[1], null);
      assert.equal((await retry([2]))[1], null);
    });

    test('take inputs that another has as well, unless they are to be the only ones', async () => {
      const store = await sharedStore();
      const first = await submitted(store, {}, ['a', 'b']);
      await failAll(store, first);
      const inputs = { retriedFrom: first, retriedInputs: { inputIndexes: [0], isOnce: false } };
      const retries = [await submitted(store, inputs), await submitted(store, inputs)];
      for (const jobId of retries) assert.equal((await store.findJob(jobId))?.retried_from, first);
      assert.deepEqual(await retriesOf(store, first), [true, false]);
    });

    test('find the failed jobs of a caller by reason, operation and the time of their end', async () => {
      const store = await sharedStore();
      const start = new Date().toISOString();
      const caller = 'finder';
      const [plain, verify, foreign, fine] = [
        await submitted(store, { caller }, ['a', 'b']),
        await submitted(store, { caller, operation: 'verify' }),
        await submitted(store, { caller: 'another' }),
        await submitted(store, { caller }),
      ];
      for (const jobId of [plain, verify, foreign]) await failAll(store, jobId);
      const [lease] = await leased(store, fine);
      assert(lease !== undefined);
      await succeed(store, lease, '/out/fine');
      const ended = (await store.findJob(verify))?.timing.finished_at ?? assert.fail();
      const before = ids.next();
      const found = (more: object, limit = 10, after?: string) =>
        store.findFailedJobs({ caller, before, ...more }, limit, after);
      assert.deepEqual(await found({}), [plain, verify]);
      assert.deepEqual([await found({}, 1), await found({}, 10, plain)], [[plain], [verify]]);
      assert.deepEqual(await found({ before: verify }), [plain]);
      assert.deepEqual(await found({ operation: 'verify' }), [verify]);
      assert.deepEqual(await found({ reasons: ['OUTPUT_TAKEN', LOST.reason] }), [plain, verify]);
      assert.deepEqual(await found({ reasons: ['OUTPUT_TAKEN'] }), []);
      assert.deepEqual(await found({ since: ended }).then((jobs) => jobs.at(-1)), verify);
      assert.deepEqual(await found({ until: start }), []);
      assert.ok((await store.findFailedJobs({ before }, 1000)).includes(foreign));
      await submitted(store, { retriedFrom: plain, retriedInputs: once([1]) });
      assert.deepEqual([await found({}), await store.countLeftOut({ caller, before })], [[plain, verify], 1]);
      await submitted(store, { retriedFrom: plain, retriedInputs: once([0]) });
      assert.deepEqual([await found({}), await store.countLeftOut({ caller, before })], [[verify], 2]);
      assert.equal(await store.countLeftOut({ caller, before, operation: 'verify' }), 0);
    });

    const presigned = (name: string) => ({ type: 'remote_file_url' as const, url: `https://example.com/${name}?hush` });
    const plain = (name: string) => ({ type: 'remote_file_url' as const, url: `https://example.com/${name}` });
    const parent = (source: object) => ({ type: 'file', source });

    const numbered = { type: 'remote_file_url' as const, url: 's3://bucket/Take #2.mp4' };

    for (const [what, request, erased] of [
      ['an input', { inputs: [presigned('a'), plain('b'), { type: 'local_file_path', path: '/c?d' }, numbered] }, [0]],
      [
        'an override or a sidecar',
        {
          inputs: [plain('a'), plain('b'), plain('c')],
          params: {
            parent_overrides: [{ input_index: 1, parent: parent(presigned('p')) }],
            sidecars: [{ input_index: 2, source: presigned('s') }],
          },
        },
        [1, 2],
      ],
      [
        'the parent of all that have no other',
        {
          inputs: [plain('a'), plain('b'), plain('c'), plain('d')],
          params: {
            parent: parent(presigned('p')),
            parent_overrides: [
              { input_index: 1, parent: null },
              { input_index: 2, parent: parent(plain('q')) },
            ],
          },
        },
        [0, 3],
      ],
    ] as const satisfies readonly (readonly [string, Submission['request'], readonly number[]])[]) {
      test(`are told which inputs lost a query: that of ${what}`, async () => {
        const store = await sharedStore();
        const jobId = await submitted(store, { request });
        await failAll(store, jobId);
        const { unsuccessful: failed } = (await store.findRetriedJob(jobId)) ?? assert.fail();
        assert.equal(failed.length, request.inputs.length);
        assert.deepEqual(
          failed.filter(({ isErased }) => isErased).map(({ inputIndex }) => inputIndex),
          erased,
        );
        assert.ok(!JSON.stringify(failed).includes('hush'));
      });
    }
  });
}
