import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { failedEntry, MAX_PROCESS_ENDS, MAX_SERVICE_ENDS, NO_PROGRESS, succeededEntry } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-id.ts';
import type { ActionRunner } from '#jobs/store/actions.ts';
import type { ClaimedInput } from '#jobs/store/claim-inputs.ts';
import { JobStore } from '#jobs/store/job-store.ts';
import { resultsOf, scripts } from './test-jobs.ts';

const ids = new JobIds();
const DONE = { bytesDone: 70, bytesTotal: 70 };

/** What every engine under the job store must keep to. `databaseFor` makes a database, and resolves with what opens it again and again. */
export function describeJobStore(
  engineName: string,
  databaseFor: (t: TestContext) => Promise<() => Promise<ActionRunner>>,
) {
  async function openStore(t: TestContext): Promise<{ store: JobStore; reopen(): Promise<JobStore> }> {
    const openEngine = await databaseFor(t);
    let store = new JobStore(await openEngine());
    t.after(() => store.close());
    const reopen = async () => {
      await store.close();
      store = new JobStore(await openEngine());
      return store;
    };
    return { store, reopen };
  }

  async function submitted(store: JobStore, inputs: readonly string[], sync = false): Promise<string> {
    const jobId = ids.next();
    await store.submitJob({ ...scripts(inputs, { sync }), jobId, queuedAt: new Date() });
    return jobId;
  }

  async function started(store: JobStore, jobId: string): Promise<ClaimedInput> {
    const [claim] = await store.claimInputs(jobId, { start: 1, reserve: 0 });
    assert(claim !== undefined);
    return claim;
  }

  async function reserved(store: JobStore, jobId: string): Promise<ClaimedInput> {
    const [claim] = await store.claimInputs(jobId, { start: 0, reserve: 1 });
    assert(claim !== undefined);
    return claim;
  }

  const succeed = (store: JobStore, claim: ClaimedInput) =>
    store.finishInput(claim, succeededEntry(claim.inputIndex, { outputPath: '/out', warnings: [] }), DONE);

  describe(`job store on ${engineName}`, () => {
    test('a submitted job is queued, with no results and all its inputs to do', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b']);
      const job = await store.findJob(jobId);
      assert.equal(job?.status, 'queued');
      assert.deepEqual(resultsOf(job), []);
      assert.deepEqual(Object.keys(job?.timing ?? {}), ['queued_at']);
      assert.deepEqual(job?.progress, { inputs_done: 0, inputs_total: 2, bytes_done: 0, bytes_total: 0 });
    });

    test('an unknown job is not found', async (t) => {
      const { store } = await openStore(t);
      assert.equal(await store.findJob(ids.next()), null);
    });

    test('a started input carries all that the request said', async (t) => {
      const { store } = await openStore(t);
      const jobId = ids.next();
      const request = {
        inputs: [{ type: 'local_file_path', path: '/ä "\\ 😀' }],
        output: { type: 'local', prefix: null, name: 'n' },
        params: { assertions: [{ label: 'x', data: [1.5, null, '\u0000\u2028'] }] },
      } as const;
      await store.submitJob({ jobId, operation: 'c2pa-audio', request, sync: true, queuedAt: new Date() });
      const claim = await started(store, jobId);
      assert.deepEqual([claim.inputIndex, claim.attempt, JSON.parse(claim.inputJson)], [0, 1, request.inputs[0]]);
      const shared = await store.requestOfJob(jobId);
      assert.equal(shared?.operation, 'c2pa-audio');
      assert.deepEqual(JSON.parse(shared.outputJson), request.output);
      assert.deepEqual(JSON.parse(shared.paramsJson), request.params);
      assert.equal((await store.findJob(jobId))?.status, 'running');
    });

    test('inputs start in order, each once, and none when none is queued', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b', 'c']);
      const claims = await Promise.all([1, 2, 1, 1].map((reserve) => store.claimInputs(jobId, { start: 1, reserve })));
      const indexes = claims.flat().map(({ inputIndex }) => inputIndex);
      assert.deepEqual(indexes.sort(), [0, 1, 2]);
      for (const some of claims)
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
      const { inputs } = await store.placesOfJob(jobId);
      assert.equal(inputs.length, 10_000);
      assert.deepEqual(inputs[9_999], { type: 'local_file_path', path: 'input 9999' });
      assert.deepEqual(await store.waitingJobs(), [{ jobId, sync: false, caller: null, waiting: 10_000 }]);
    });

    test('the last input ends the job, which has one result for each in their order', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b']);
      const [first, second] = [await started(store, jobId), await started(store, jobId)];
      const refused = failedEntry(1, {
        reason: 'SOURCE_NOT_FOUND',
        details: { path: 'b' },
        location: { inputIndex: 1 },
      });
      assert.deepEqual(await store.finishInput(second, refused, NO_PROGRESS), { input: 'ended', jobEnded: false });
      assert.deepEqual(resultsOf(await store.findJob(jobId)), []);
      assert.deepEqual(await succeed(store, first), { input: 'ended', jobEnded: true });
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
      assert.deepEqual(await store.endedAmong([jobId]), [jobId]);
    });

    test('a job of which every input succeeded has succeeded', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a']);
      await succeed(store, await started(store, jobId));
      assert.equal((await store.findJob(jobId))?.status, 'succeeded');
    });

    test('bytes of finished inputs count as progress', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b']);
      await succeed(store, await started(store, jobId));
      const job = await store.findJob(jobId);
      assert.deepEqual(job?.progress, { inputs_done: 1, inputs_total: 2, bytes_done: 70, bytes_total: 70 });
    });

    test('a late result of an old attempt is refused and changes nothing', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a']);
      const old = await started(store, jobId);
      await store.requeueInput(old);
      assert.deepEqual(await succeed(store, old), { input: 'late', jobEnded: false });
      const current = await started(store, jobId);
      assert.equal(current.attempt, 2);
      assert.deepEqual(await succeed(store, old), { input: 'late', jobEnded: false });
      assert.equal((await store.requeueInput(old)).input, 'late');
      assert.equal((await store.recordProcessEnd(old, 'by a signal')).input, 'late');
      assert.deepEqual(await succeed(store, current), { input: 'ended', jobEnded: true });
      assert.equal((await succeed(store, current)).input, 'late');
    });

    test('an input whose process ended three times fails, and its job ends', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a']);
      for (let time = 1; time < MAX_PROCESS_ENDS; time += 1) {
        const end = await store.recordProcessEnd(await started(store, jobId), 'by the signal SIGSEGV');
        assert.deepEqual(end, { input: 'queued', jobEnded: false });
      }
      const last = await store.recordProcessEnd(await started(store, jobId), 'by the signal SIGSEGV');
      assert.deepEqual(last, { input: 'ended', jobEnded: true });
      assert.equal(resultsOf(await store.findJob(jobId))[0]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
    });

    test('being queued again is no process end, however often it happens', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a']);
      for (let time = 0; time < MAX_PROCESS_ENDS + 2; time += 1) await store.requeueInput(await started(store, jobId));
      assert.deepEqual(await succeed(store, await started(store, jobId)), { input: 'ended', jobEnded: true });
    });

    test('what is recorded is there when the store is opened again', async (t) => {
      const { store, reopen } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b']);
      await succeed(store, await started(store, jobId));
      const before = await store.findJob(jobId);
      const again = await reopen();
      assert.deepEqual(await again.findJob(jobId), before);
      assert.deepEqual(await again.waitingJobs(), [{ jobId, sync: false, caller: null, waiting: 1 }]);
    });

    test('recovery queues what ran and what was reserved, and counts no process end', async (t) => {
      const { store, reopen } = await openStore(t);
      const jobId = await submitted(store, ['runs', 'is reserved', 'waits']);
      const running = await started(store, jobId);
      await reserved(store, jobId);
      const again = await reopen();
      const recovered = await again.recover();
      assert.deepEqual(
        recovered.map(({ inputIndex, end }) => [inputIndex, end.input]),
        [
          [0, 'queued'],
          [1, 'queued'],
        ],
      );
      assert.deepEqual(await again.waitingJobs(), [{ jobId, sync: false, caller: null, waiting: 3 }]);
      assert.equal((await succeed(again, running)).input, 'late');
      for (let time = 1; time < MAX_PROCESS_ENDS; time += 1) {
        const claims = [await started(again, jobId), await started(again, jobId)];
        for (const claim of claims) await again.recordProcessEnd(claim, 'by a signal');
      }
      assert.deepEqual(
        await again.waitingJobs(),
        [{ jobId, sync: false, caller: null, waiting: 3 }],
        'none has failed',
      );
    });

    test('recovery fails what ran at too many ends of the service, and with it the job', async (t) => {
      const { store, reopen } = await openStore(t);
      const jobId = await submitted(store, ['a']);
      let current = store;
      for (let time = 1; time <= MAX_SERVICE_ENDS; time += 1) {
        assert.equal((await current.findJob(jobId))?.status, time === 1 ? 'queued' : 'running');
        await started(current, jobId);
        current = await reopen();
        await current.recover();
      }
      assert.equal((await current.findJob(jobId))?.status, 'failed');
    });

    test('a reserved input is started, finished and requeued like any other', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b']);
      const [first, second] = [await started(store, jobId), await reserved(store, jobId)];
      assert.deepEqual(await store.claimInputs(jobId, { start: 1, reserve: 1 }), []);
      assert.equal((await succeed(store, first)).input, 'ended');
      assert.equal((await store.requeueInput(second)).input, 'queued');
      await store.startReservedInput(second);
      assert.equal((await started(store, jobId)).inputIndex, 1);
    });

    test('the places of a job are its inputs and what it has delivered', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b']);
      await succeed(store, await started(store, jobId));
      const places = await store.placesOfJob(jobId);
      assert.deepEqual(places.outputs, [{ inputIndex: 0, outputPath: '/out' }]);
      assert.equal(places.inputs.length, 2);
    });

    test('an input that is delivered is claimed; once it has ended, there is nothing to do', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b']);
      const { claim } = await store.takeDelivered({ jobId, inputIndex: 1 });
      assert(claim !== null);
      assert.deepEqual([claim.inputIndex, claim.attempt, JSON.parse(claim.inputJson).path], [1, 1, 'b']);
      assert.equal((await store.findJob(jobId))?.status, 'running');
      await succeed(store, claim);
      assert.deepEqual(await store.takeDelivered({ jobId, inputIndex: 1 }), { claim: null, jobEnded: false });
    });

    test('an input that is delivered again was lost by its node: too often, and it fails', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a']);
      const claims = [];
      for (let time = 0; time < MAX_SERVICE_ENDS; time += 1) {
        claims.push((await store.takeDelivered({ jobId, inputIndex: 0 })).claim);
      }
      assert.deepEqual(
        claims.map((claim) => claim?.attempt),
        claims.map((_, index) => index + 1),
      );
      assert.equal((await succeed(store, claims[1] as ClaimedInput)).input, 'late');
      assert.deepEqual(await store.takeDelivered({ jobId, inputIndex: 0 }), { claim: null, jobEnded: true });
      assert.equal(resultsOf(await store.findJob(jobId))[0]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
    });

    test('the loss of a node that was none is taken back', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a']);
      let { claim } = await store.takeDelivered({ jobId, inputIndex: 0 });
      for (let time = 0; time < MAX_SERVICE_ENDS + 2; time += 1) {
        assert(claim !== null, 'the input failed for connections that were lost');
        const lost = claim;
        ({ claim } = await store.takeDelivered({ jobId, inputIndex: 0 }));
        await store.forgiveServiceEnd(lost);
      }
    });

    test('an input that is delivered of a cancelled job ends', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b']);
      const { claim } = await store.takeDelivered({ jobId, inputIndex: 0 });
      assert(claim !== null);
      await store.cancelJob(jobId);
      assert.deepEqual(await store.takeDelivered({ jobId, inputIndex: 1 }), { claim: null, jobEnded: false });
      assert.deepEqual(await store.takeDelivered({ jobId, inputIndex: 0 }), { claim: null, jobEnded: true });
      assert.equal((await succeed(store, claim)).input, 'late');
    });

    test('a destination goes to one input of a job, with all above it and inside it', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b', 'c']);
      const claim = (inputIndex: number, place: string) =>
        store.claimDestination({ jobId, inputIndex, attempt: 1 }, place);
      assert.equal(await claim(0, '/out/x'), true);
      assert.equal(await claim(0, '/out/x'), true, 'an input may claim the same one again');
      for (const place of ['/out/x', '/out', '/out/x/y', '/out/x/y/z'])
        assert.equal(await claim(1, place), false, place);
      for (const place of ['/out/x-y', '/out/x0', '/out/w', '/out/xy/z'])
        assert.equal(await claim(1, place), true, place);
      await store.releaseDestinations({ jobId, inputIndex: 0, attempt: 1 });
      assert.equal(await claim(2, '/out/x/y'), true);
      const other = await submitted(store, ['a']);
      assert.equal(await store.claimDestination({ jobId: other, inputIndex: 0, attempt: 1 }, '/out/x/y'), true);
    });

    test('a failure that may pass is counted, and is no process end', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a']);
      for (let time = 0; time < MAX_PROCESS_ENDS + 2; time += 1) {
        const claim = await started(store, jobId);
        assert.equal(claim.transientFailures, time);
        await store.recordTransientFailure(claim);
        assert.equal((await store.requeueInput(claim)).input, 'queued');
      }
    });

    test('what runs on this engine is counted, and what waits', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a', 'b', 'c']);
      const claim = await started(store, jobId);
      assert.equal(await store.countQueued(), 2);
      assert.deepEqual(await store.currentAmong([claim, { ...claim, attempt: 7 }]), [claim]);
      await store.noteProgress([{ ...claim, bytesDone: 3, bytesTotal: 9 }]);
    });

    test('pruning deletes jobs that ended before the time, and no others', async (t) => {
      const { store } = await openStore(t);
      const [old, running, waiting] = [
        await submitted(store, ['a']),
        await submitted(store, ['a']),
        await submitted(store, ['a']),
      ];
      await succeed(store, await started(store, old));
      await started(store, running);
      const now = Date.now();
      assert.equal(await store.pruneEnded(new Date(now - 60_000)), 0);
      assert.equal(await store.pruneEnded(new Date(now + 60_000)), 1);
      assert.equal(await store.findJob(old), null);
      assert.equal((await store.placesOfJob(old)).inputs.length, 0);
      assert.notEqual(await store.findJob(running), null);
      assert.notEqual(await store.findJob(waiting), null);
    });

    test('pruning gets through more jobs and inputs than go into one transaction', async (t) => {
      const { store } = await openStore(t);
      const jobIds = await Promise.all([...Array(450)].map(() => submitted(store, ['a'])));
      await Promise.all(jobIds.map(async (jobId) => succeed(store, await started(store, jobId))));
      assert.equal(await store.pruneEnded(new Date(Date.now() + 60_000)), 450);
    });

    test('one write that fails takes none of those with it that share its commit', async (t) => {
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
      assert.equal((await store.waitingJobs()).length, 3);
    });

    test('which jobs have ended can be asked for more than a statement holds', async (t) => {
      const { store } = await openStore(t);
      const jobId = await submitted(store, ['a']);
      const unknown = Array.from({ length: 40_000 }, (_, index) => `unknown-${index}`);
      const ended = await store.endedAmong([...unknown, jobId]);
      assert.equal(ended.length, unknown.length);
      assert(!ended.includes(jobId));
    });
  });
}
