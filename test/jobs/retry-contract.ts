import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NO_PROGRESS, type Submission } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-ids.ts';
import { failedEntry } from '#jobs/result-entries.ts';
import type { JobStore, LeasedInput } from '#jobs/store/job-store.ts';
import { pruneAllJobs } from '#jobs/store/maintenance.ts';
import { finish, leased, succeed as succeedOne } from '../support/jobs/leases.ts';
import { type Scope, scripts, shared } from '../support/jobs/test-jobs.ts';

const ids = new JobIds();
const LOST = { reason: 'SOURCE_NOT_FOUND', details: { path: '/' }, location: {} } as const;

/** The contract of `JobStore` for retries. */
export function describeRetries(engineName: string, databaseFor: (scope: Scope) => Promise<() => Promise<JobStore>>) {
  async function openStore(scope: Scope): Promise<JobStore> {
    const store = await (await databaseFor(scope))();
    scope.after(() => store.close());
    return store;
  }

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
    test('get the failed inputs of a job in order, and all that its request had', async () => {
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
      const { outputJson, paramsJson, failed, ...rest } = job;
      const described = { operation: 'verify', caller: 'newsroom', clientReference: 'r', labels };
      assert.deepEqual(rest, { ...described, isFinished: true });
      assert.deepEqual([JSON.parse(outputJson), JSON.parse(paramsJson)], [output, params]);
      assert.deepEqual(
        failed.map(({ inputJson, ...input }) => ({ ...input, input: JSON.parse(inputJson) })),
        [
          { inputIndex: 0, name: 'a', isErased: false, input: inputs[0] },
          { inputIndex: 2, name: 'c', isErased: false, input: inputs[2] },
        ],
        'the cancelled input did not fail',
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
        const { failed } = (await store.findRetriedJob(jobId)) ?? assert.fail();
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
