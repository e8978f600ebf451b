import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InputAttempt } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-ids.ts';
import { failedEntry } from '#jobs/result-entries.ts';
import { MAX_SERVICE_EXITS } from '#jobs/store/finish-input.ts';
import type { JobStore, LeasedInput } from '#jobs/store/job-store.ts';
import { pruneAllJobs } from '#jobs/store/maintenance.ts';
import { type DatabaseFor, finish, leased, release, succeed as succeedOne } from '../support/jobs/leases.ts';
import { resultsOf, type Scope, scripts, shared } from '../support/jobs/test-jobs.ts';

const ids = new JobIds();
const DONE = { bytesDone: 70, bytesTotal: 70 };

/** The contract of `JobStore`. */
export function describeJobStore(engineName: string, databaseFor: DatabaseFor) {
  async function openStore(scope: Scope): Promise<{ store: JobStore; reopen(): Promise<JobStore> }> {
    const openEngine = await databaseFor();
    let store = await openEngine();
    scope.after(() => store.close());
    const reopen = async () => {
      await store.close();
      store = await openEngine();
      return store;
    };
    return { store, reopen };
  }

  /** For tests that look at their own jobs only. */
  const sharedStore = shared(async (scope) => (await openStore(scope)).store);

  async function submitted(store: JobStore, inputs: readonly string[], sync = false): Promise<string> {
    const jobId = ids.next();
    await store.submitJob({ ...scripts(inputs, { sync }), jobId, queuedAt: new Date() });
    return jobId;
  }

  async function started(store: JobStore, jobId: string): Promise<LeasedInput> {
    const [lease] = await leased(store, jobId);
    assert(lease !== undefined);
    return lease;
  }

  async function reserved(store: JobStore, jobId: string): Promise<LeasedInput> {
    const [lease] = await leased(store, jobId, 1, 'reserved');
    assert(lease !== undefined);
    return lease;
  }

  const succeed = (store: JobStore, lease: InputAttempt) => succeedOne(store, lease, DONE);
  const exit = (store: JobStore, lease: InputAttempt) => release(store, lease, { reason: 'process-exited' });

  describe(`job store on ${engineName}`, () => {
    test('a submitted job is queued, with no results and all its inputs to do', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b']);
      const job = await store.findJob(jobId);
      assert.equal(job?.status, 'queued');
      assert.deepEqual(resultsOf(job), []);
      assert.deepEqual(Object.keys(job?.timing ?? {}), ['queued_at']);
      assert.deepEqual(job?.progress, { inputs_done: 0, inputs_total: 2, bytes_done: 0, bytes_total: 0, fraction: 0 });
    });

    test('an unknown job is not found', async () => {
      const store = await sharedStore();
      assert.equal(await store.findJob(ids.next()), null);
    });

    test('a started input carries all that the request said', async () => {
      const store = await sharedStore();
      const jobId = ids.next();
      const request = {
        inputs: [{ type: 'local_file_path', path: '/ä "\\ 😀' }],
        output: { type: 'local', prefix: null, name: 'n' },
        params: { assertions: [{ label: 'x', data: [1.5, null, '\u0000\u2028'] }] },
      } as const;
      await store.submitJob({ jobId, operation: 'c2pa-audio', request, sync: true, queuedAt: new Date() });
      const lease = await started(store, jobId);
      assert.deepEqual([lease.inputIndex, lease.attempt, JSON.parse(lease.inputJson)], [0, 1, request.inputs[0]]);
      const shared = await store.requestOfJob(jobId);
      assert.equal(shared?.operation, 'c2pa-audio');
      assert.deepEqual(JSON.parse(shared.outputJson), request.output);
      assert.deepEqual(JSON.parse(shared.paramsJson), request.params);
      assert.equal((await store.findJob(jobId))?.status, 'running');
    });

    test('inputs start in order, each once, and none when none is queued', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b', 'c']);
      const leases = [];
      for (const count of [1, 2, 1]) leases.push(await leased(store, jobId, count));
      const indexes = leases.flat().map(({ inputIndex }) => inputIndex);
      assert.deepEqual(indexes.sort(), [0, 1, 2]);
      for (const some of leases)
        assert.deepEqual(
          some,
          some.toSorted((a, b) => a.inputIndex - b.inputIndex),
        );
    });

    test('a batch of 10,000 keeps its order', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(
        store,
        Array.from({ length: 10_000 }, (_, index) => `input ${index}`),
      );
      const { inputs } = await store.pathsOfJob(jobId);
      assert.equal(inputs.length, 10_000);
      assert.deepEqual(inputs[9_999], { type: 'local_file_path', path: 'input 9999' });
      assert.equal((await store.queueState()).queued, 10_000);
    });

    test('the last input finishes the job, which has one result for each input, in order', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b']);
      const [first, second] = [await started(store, jobId), await started(store, jobId)];
      const refused = failedEntry(1, {
        reason: 'SOURCE_NOT_FOUND',
        details: { path: 'b' },
        location: { inputIndex: 1 },
      });
      assert.deepEqual(await finish(store, second, refused), {
        input: 'finished',
        jobFinished: false,
      });
      assert.deepEqual(resultsOf(await store.findJob(jobId)), []);
      assert.deepEqual(await succeed(store, first), { input: 'finished', jobFinished: true });
      const job = await store.findJob(jobId);
      assert.equal(job?.status, 'failed');
      assert.deepEqual(
        resultsOf(job).map((entry) => [entry.input_index, entry.status]),
        [
          [0, 'succeeded'],
          [1, 'failed'],
        ],
      );
      assert.deepEqual(Object.keys(job?.timing ?? {}), ['queued_at', 'started_at', 'finished_at']);
      assert.deepEqual(await store.finishedAmong([jobId]), [jobId]);
    });

    test('a job of which every input succeeded has succeeded', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a']);
      await succeed(store, await started(store, jobId));
      assert.equal((await store.findJob(jobId))?.status, 'succeeded');
    });

    test('bytes of finished inputs count as progress', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b']);
      await succeed(store, await started(store, jobId));
      const job = await store.findJob(jobId);
      assert.deepEqual(job?.progress, {
        inputs_done: 1,
        inputs_total: 2,
        bytes_done: 70,
        bytes_total: 70,
        fraction: 0.5,
      });
    });

    test('bytes of running inputs count as progress while they run', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b']);
      const lease = await started(store, jobId);
      const progress = async () => {
        const { bytes_done: done, bytes_total: total, fraction } = (await store.findJob(jobId))?.progress ?? {};
        return [done, total, fraction];
      };
      await store.recordProgress([{ ...lease, bytesDone: 3, bytesTotal: 9 }]);
      assert.deepEqual(await progress(), [3, 9, 1 / 6]);
      await release(store, lease, { reason: 'transient-failure', retryAt: Date.now() + 60_000 });
      assert.deepEqual(await progress(), [0, 0, 0]);
    });

    test('a late result of an old attempt is refused and changes nothing', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a']);
      const old = await started(store, jobId);
      await release(store, old);
      assert.deepEqual(await succeed(store, old), { input: 'late', jobFinished: false });
      const current = await started(store, jobId);
      assert.equal(current.attempt, 2);
      assert.deepEqual(await succeed(store, old), { input: 'late', jobFinished: false });
      assert.equal((await release(store, old)).input, 'late');
      assert.equal((await exit(store, old)).input, 'late');
      assert.deepEqual(await succeed(store, current), { input: 'finished', jobFinished: true });
      assert.equal((await succeed(store, current)).input, 'late');
    });

    test('an exit of its process is counted, and requeueing is none', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a']);
      for (let exits = 0; exits < 3; exits += 1) {
        await release(store, await started(store, jobId));
        const lease = await started(store, jobId);
        assert.deepEqual([lease.processExits, (await exit(store, lease)).input], [exits, 'queued']);
      }
      assert.deepEqual(await succeed(store, await started(store, jobId)), { input: 'finished', jobFinished: true });
    });

    test('records persist when the store is opened again', async (t) => {
      const { store, reopen } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b']);
      await succeed(store, await started(store, jobId));
      const before = await store.findJob(jobId);
      const again = await reopen();
      assert.deepEqual(await again.findJob(jobId), before);
      assert.equal((await again.queueState()).queued, 1);
    });

    test('recovery requeues running and reserved inputs, and counts no process exit', async (t) => {
      const { store, reopen } = await openStore(t);
      const jobId = await submitted(store, ['runs', 'is reserved', 'waits']);
      const running = await started(store, jobId);
      await reserved(store, jobId);
      const again = await reopen();
      assert.deepEqual(await again.recoverLeases(), { inputs: 2, waitingJobs: 1 });
      assert.equal((await again.queueState()).queued, 3);
      assert.equal((await succeed(again, running)).input, 'late');
      const leases = await leased(again, jobId, 3);
      assert.deepEqual(
        leases.map(({ processExits }) => processExits),
        [0, 0, 0],
      );
    });

    test('recovery fails an input that was running at too many service exits, and with it the job', async (t) => {
      const { store, reopen } = await openStore(t);
      const [jobId, cancelled] = [await submitted(store, ['a']), await submitted(store, ['b'])];
      let current = store;
      for (let time = 1; time <= MAX_SERVICE_EXITS; time += 1) {
        assert.equal((await current.findJob(jobId))?.status, time === 1 ? 'queued' : 'running');
        for (const job of [jobId, cancelled]) await started(current, job);
        if (time === MAX_SERVICE_EXITS) await current.cancelJob(cancelled);
        current = await reopen();
        await current.recoverLeases();
      }
      assert.equal((await current.findJob(jobId))?.status, 'failed');
      assert.equal(resultsOf(await current.findJob(cancelled))[0]?.status, 'cancelled');
    });

    test('a reserved input is started, finished and requeued like any other', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b']);
      const [first, second] = [await started(store, jobId), await reserved(store, jobId)];
      assert.deepEqual(await leased(store, jobId), []);
      assert.equal((await succeed(store, first)).input, 'finished');
      assert.equal((await release(store, second)).input, 'queued');
      await store.startInputs([second]);
      assert.equal((await started(store, jobId)).inputIndex, 1);
    });

    test('the paths of a job are its inputs and its outputs so far', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b']);
      await succeed(store, await started(store, jobId));
      const paths = await store.pathsOfJob(jobId);
      assert.deepEqual(paths.outputs, [{ inputIndex: 0, outputPath: '/out' }]);
      assert.equal(paths.inputs.length, 2);
    });

    test('an output path is reserved for one input of a job, with all paths above and below it', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a', 'b', 'c']);
      const reserve = (inputIndex: number, path: string) =>
        store.reserveOutputPath({ jobId, inputIndex, attempt: 1 }, path);
      assert.equal(await reserve(0, '/out/x'), true);
      assert.equal(await reserve(0, '/out/x'), true, 'an input may reserve its path again');
      for (const path of ['/out/x', '/out', '/out/x/y', '/out/x/y/z'])
        assert.equal(await reserve(1, path), false, path);
      for (const path of ['/out/x-y', '/out/x0', '/out/w', '/out/xy/z'])
        assert.equal(await reserve(1, path), true, path);
      await store.releaseOutputPaths({ jobId, inputIndex: 0, attempt: 1 });
      assert.equal(await reserve(2, '/out/x/y'), true);
      const other = await submitted(store, ['a']);
      assert.equal(await store.reserveOutputPath({ jobId: other, inputIndex: 0, attempt: 1 }, '/out/x/y'), true);
    });

    test('a transient failure is counted, and is no process exit', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a']);
      for (let time = 0; time < 5; time += 1) {
        const lease = await started(store, jobId);
        assert.deepEqual([lease.transientFailures, lease.processExits], [time, 0]);
        const failure = { reason: 'transient-failure', retryAt: Date.now() } as const;
        assert.equal((await release(store, lease, failure)).input, 'queued');
        assert.deepEqual(await leased(store, jobId), [], 'it is in its pause');
        assert.equal((await release(store, lease)).input, 'queued');
      }
    });

    test('queued inputs are counted by the caller of their job', async (t) => {
      const { store } = await openStore(t);
      assert.deepEqual(await store.countQueued(), new Map());
      const jobId = await submitted(store, ['a', 'b', 'c']);
      await started(store, jobId);
      for (const [caller, count] of [
        ['newsroom', 2],
        ['archive', 1],
        ['newsroom', 3],
      ] as const) {
        const inputs = Array<string>(count).fill('a');
        await store.submitJob({ ...scripts(inputs, { caller }), jobId: ids.next(), queuedAt: new Date() });
      }
      const counts = await store.countQueued();
      assert.deepEqual(
        counts,
        new Map([
          [null, 2],
          ['newsroom', 5],
          ['archive', 1],
        ]),
      );
      assert.equal((await store.queueState()).queued, 8);
    });

    test('pruning deletes jobs that finished before the time, and no others', async (t) => {
      const { store } = await openStore(t);
      const [old, running, waiting] = [
        await submitted(store, ['a']),
        await submitted(store, ['a']),
        await submitted(store, ['a']),
      ];
      await succeed(store, await started(store, old));
      await started(store, running);
      const now = Date.now();
      assert.equal(await pruneAllJobs(store, new Date(now - 60_000)), 0);
      assert.equal(await pruneAllJobs(store, new Date(now + 60_000)), 1);
      assert.equal(await store.findJob(old), null);
      assert.equal((await store.pathsOfJob(old)).inputs.length, 0);
      assert.notEqual(await store.findJob(running), null);
      assert.notEqual(await store.findJob(waiting), null);
    });

    test('pruning deletes more jobs and inputs than one transaction does', async (t) => {
      const { store } = await openStore(t);
      const jobIds = await Promise.all([...Array(450)].map(() => submitted(store, ['a'])));
      await Promise.all(jobIds.map(async (jobId) => succeed(store, await started(store, jobId))));
      assert.equal(await pruneAllJobs(store, new Date(Date.now() + 60_000)), 450);
    });

    test('a write that fails does not fail the others that share its commit', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a']);
      const twice = { ...scripts(['a']), jobId, queuedAt: new Date() };
      const outcomes = await Promise.allSettled([
        submitted(store, ['b']),
        store.submitJob(twice),
        submitted(store, ['c']),
      ]);
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ['fulfilled', 'rejected', 'fulfilled'],
      );
      assert.equal((await store.queueState()).queued, 3);
    });

    test('finished jobs are found among more jobs than one statement can name', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, ['a']);
      const unknown = Array.from({ length: 40_000 }, (_, index) => `unknown-${index}`);
      const ended = await store.finishedAmong([...unknown, jobId]);
      assert.equal(ended.length, unknown.length);
      assert(!ended.includes(jobId));
    });
  });
}
