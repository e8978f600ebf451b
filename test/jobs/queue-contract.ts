import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { NO_PROGRESS, type Submission } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-ids.ts';
import type { JobEngine, LeaseRequest, QueueEvent } from '#jobs/queue/job-queue.ts';
import { succeededEntry } from '#jobs/result-entries.ts';
import type { FinishedInput, LeasedInput, ReleasedInput } from '#jobs/store/job-store.ts';
import { ALL_JOBS, releaseAll } from '../support/jobs/leases.ts';
import { resultsOf, type Scope, scripts, until } from '../support/jobs/test-jobs.ts';

const ids = new JobIds();
const NEVER = new AbortController().signal;

/** An engine under test. */
export interface EngineUnderTest {
  readonly engine: JobEngine;
  /** Opens what a kill of this engine at this moment leaves, as the next start or another node finds it. */
  openAfterKill(): Promise<JobEngine>;
  /** Opens it again after it was closed. */
  reopen(): Promise<JobEngine>;
}

/** The contract of `JobQueue`. */
export function describeJobQueue(engineName: string, openEngine: (scope: Scope) => Promise<EngineUnderTest>) {
  async function submitted(
    { store }: JobEngine,
    count: number,
    more: Partial<Submission> = {},
    needs: readonly string[][] = [],
  ): Promise<string> {
    const jobId = ids.next();
    await store.submitJob({ ...scripts(Array(count).fill('x'), more), jobId, queuedAt: new Date(), needs });
    return jobId;
  }

  function outageOf(lease: LeasedInput, dependency: string, since = '2026-01-01T00:00:00.000Z'): ReleasedInput {
    const error = new AppError('SIGNATURE_FAILED', { problem: 'x' }).toData();
    const needs = [...new Set([...lease.needs, dependency])];
    return { lease, reason: 'outage', dependency, since, error, needs, retryAt: null };
  }

  async function leaseOne({ queue }: JobEngine, filter: Partial<LeaseRequest> = {}): Promise<LeasedInput | undefined> {
    return (await queue.lease({ ...ALL_JOBS, ...filter, count: 1 })).inputs[0];
  }

  async function leaseSome({ queue }: JobEngine, count: number): Promise<readonly LeasedInput[]> {
    return (await queue.lease({ ...ALL_JOBS, count })).inputs;
  }

  /** Leases inputs one by one until none is left. */
  async function leaseAll(engine: JobEngine, filter: Partial<LeaseRequest> = {}): Promise<readonly LeasedInput[]> {
    const all: LeasedInput[] = [];
    for (let next = await leaseOne(engine, filter); next !== undefined; next = await leaseOne(engine, filter))
      all.push(next);
    return all;
  }

  function resultOf(lease: LeasedInput): FinishedInput {
    const entry = succeededEntry(lease.inputIndex, { outputPath: '/out', warnings: [], manifestDigest: null });
    return { lease, entry, progress: NO_PROGRESS, digest: null };
  }

  /** Keeps the events of a queue. */
  function eventsOf({ queue }: JobEngine): QueueEvent[] {
    const events: QueueEvent[] = [];
    void (async () => {
      for await (const event of queue.events) events.push(event);
    })();
    return events;
  }

  describe(`the promises of the queue on ${engineName}`, () => {
    test('what is acknowledged is on the disk, and is leased after a kill', async (t) => {
      const { engine, openAfterKill } = await openEngine(t);
      const jobId = await submitted(engine, 3);
      const next = await openAfterKill();
      assert.deepEqual(
        (await leaseAll(next)).map((lease) => [lease.jobId, lease.inputIndex]),
        [0, 1, 2].map((index) => [jobId, index]),
      );
    });

    test('what is recorded is on the disk: no input runs again that has a result', async (t) => {
      const { engine, openAfterKill } = await openEngine(t);
      const jobId = await submitted(engine, 2);
      const lease = await leaseOne(engine);
      assert(lease !== undefined);
      await engine.queue.finish(resultOf(lease));
      const next = await openAfterKill();
      assert.deepEqual((await next.store.findJob(jobId))?.progress?.inputs_done, 1);
      assert.deepEqual(
        (await leaseAll(next)).map(({ inputIndex }) => inputIndex),
        [1],
      );
    });

    test('a lost lease commits nothing', async (t) => {
      const { engine, openAfterKill } = await openEngine(t);
      const jobId = await submitted(engine, 1);
      const lost = await leaseOne(engine);
      assert(lost !== undefined);
      assert.equal(await engine.queue.mayCommit(lost, NEVER), true);
      const next = await openAfterKill();
      const taken = await leaseOne(next);
      assert.equal(taken?.attempt, 2);
      if (engine.queue.isShared) {
        const { lost: told } = await engine.queue.renew([{ ...lost, ...NO_PROGRESS }]);
        assert.deepEqual(
          told.map(({ attempt }) => attempt),
          [1],
        );
        assert.equal(await engine.queue.mayCommit(lost, AbortSignal.abort()), false);
      }
      assert.equal((await next.queue.finish(resultOf(lost))).input, 'late');
      assert.equal((await next.store.findJob(jobId))?.status, 'running');
    });

    test('a late result changes nothing', async (t) => {
      const { engine } = await openEngine(t);
      const jobId = await submitted(engine, 1);
      const old = await leaseOne(engine);
      assert(old !== undefined);
      assert.equal((await engine.queue.release({ lease: old, reason: 'stopped' })).input, 'queued');
      assert.equal((await engine.queue.finish(resultOf(old))).input, 'late');
      const current = await leaseOne(engine);
      assert(current !== undefined);
      assert.equal(current.attempt, 2);
      assert.equal((await engine.queue.finish(resultOf(old))).input, 'late');
      assert.equal((await engine.queue.release({ lease: old, reason: 'stopped' })).input, 'late');
      const { finishedJob } = await engine.queue.finish(resultOf(current));
      assert.deepEqual([finishedJob?.jobId, finishedJob?.status, finishedJob?.inputs], [jobId, 'succeeded', 1]);
      assert.equal((await engine.queue.finish(resultOf(current))).input, 'late');
      assert.equal(resultsOf(await engine.store.findJob(jobId)).length, 1);
    });

    test('a cancelled input never starts, whenever the cancellation comes', async (t) => {
      const { engine } = await openEngine(t);
      for (let leasedBefore = 0; leasedBefore < 40; leasedBefore += 1) {
        const jobId = await submitted(engine, 60);
        const leases: LeasedInput[] = [];
        for (let count = 0; count < leasedBefore; count += 1) leases.push(...(await leaseSome(engine, 1)));
        const during = leaseSome(engine, 2);
        await engine.store.cancelJob(jobId);
        leases.push(...(await during));
        assert.deepEqual(await leaseAll(engine), []);
        if (leases.length > 0) {
          const { cancelledJobs } = await engine.queue.renew(leases.map((lease) => ({ ...lease, ...NO_PROGRESS })));
          assert.deepEqual(cancelledJobs, [jobId]);
        }
        const released = await releaseAll(engine, leases);
        assert(!released.some(({ input }) => input === 'late'), 'inputs were cancelled that had been leased');
        assert.equal((await engine.store.findJob(jobId))?.status, 'failed');
      }
    });

    test('a stopping node gives back what it holds', async (t) => {
      const { engine, reopen } = await openEngine(t);
      await submitted(engine, 100);
      const { inputs } = await engine.queue.lease({ ...ALL_JOBS, count: 3 });
      await releaseAll(engine, inputs);
      await engine.close();
      const again = await reopen();
      const { queued, reserved, running } = await again.store.queueState();
      assert.deepEqual({ queued, reserved, running }, { queued: 100, reserved: 0, running: 0 });
      assert.equal((await leaseAll(again)).length, 100);
    });

    test('every result is counted once, and every job finishes once, with several scheduling at the same time', async (t) => {
      const { engine } = await openEngine(t);
      const jobs = [await submitted(engine, 40), await submitted(engine, 40), await submitted(engine, 40)];
      const finished: string[] = [];
      let count = 0;
      const schedule = async () => {
        while (count < 120) {
          const { inputs } = await engine.queue.lease({ ...ALL_JOBS, count: 2 });
          const ends = await Promise.all(inputs.map((lease) => engine.queue.finish(resultOf(lease))));
          assert(!ends.some(({ input }) => input === 'late'));
          count += inputs.length;
          finished.push(...ends.flatMap(({ finishedJob }) => finishedJob?.jobId ?? []));
        }
      };
      await Promise.all(Array.from({ length: 6 }, schedule));
      assert.deepEqual(finished.toSorted(), jobs.toSorted());
      for (const jobId of jobs) assert.equal((await engine.store.findJob(jobId))?.status, 'succeeded');
    });

    test('an input that failed for a moment runs again when its pause is over, and not before', async (t) => {
      const { engine } = await openEngine(t);
      const events = eventsOf(engine);
      await submitted(engine, 1);
      const lease = await leaseOne(engine);
      assert(lease !== undefined);
      await engine.queue.release({ lease, reason: 'transient-failure', retryAt: Date.now() + 1_000 });
      assert.equal(await leaseOne(engine), undefined);
      let again: LeasedInput | undefined;
      await until(async () => {
        if (events.splice(0).some(({ type }) => type === 'work')) again = await leaseOne(engine);
        return again !== undefined;
      });
      assert.deepEqual([again?.attempt, again?.transientFailures], [2, 1]);
    });

    test('an event tells of work, and of a cancelled job', async (t) => {
      const { engine } = await openEngine(t);
      const events = eventsOf(engine);
      const jobId = await submitted(engine, 1);
      await until(() => events.some(({ type }) => type === 'work'));
      await leaseOne(engine);
      await engine.store.cancelJob(jobId);
      await until(() => events.some((event) => event.type === 'cancelled' && event.jobId === jobId));
    });
  });

  describe(`the order of the queue on ${engineName}`, () => {
    /** Returns the number of leases until all inputs of some jobs are leased. */
    async function leasesUntil(engine: JobEngine, jobIds: readonly string[], count: number): Promise<number> {
      let left = count;
      for (let leases = 1; ; leases += 1) {
        const lease = await leaseOne(engine);
        assert(lease !== undefined);
        if (jobIds.includes(lease.jobId)) left -= 1;
        if (left === 0) return leases;
      }
    }

    for (const [what, jobs, inputs] of [
      ['10,000 inputs', 1, 10_000],
      ['300 jobs', 300, 1],
      ['50 batches of 20', 50, 20],
    ] as const) {
      test(`ten inputs start within 40 starts beside ${what} of another caller`, async (t) => {
        const { engine } = await openEngine(t);
        for (let job = 0; job < jobs; job += 1) await submitted(engine, inputs, { caller: 'busy' });
        // Some are leased ahead, and some low ones have had their turn.
        for (let lease = 0; lease < 20; lease += 1) await leaseOne(engine);
        const batch = await submitted(engine, 10, { caller: 'other' });
        assert((await leasesUntil(engine, [batch], 10)) <= 40);
        const singles = [];
        for (let job = 0; job < 10; job += 1) singles.push(await submitted(engine, 1, { caller: 'third' }));
        assert((await leasesUntil(engine, singles, 10)) <= 40);
      });
    }

    test('inputs that somebody waits for come first, and others come forward all the same', async (t) => {
      const { engine } = await openEngine(t);
      const async = await submitted(engine, 10);
      const sync = await submitted(engine, 100, { sync: true });
      const leases = [];
      for (let lease = 0; lease < 100; lease += 1) leases.push(await leaseOne(engine));
      const count = leases.filter((lease) => lease?.jobId === async).length;
      assert(count >= 10, `${count} inputs came forward`);
      assert(leases.slice(0, 7).every((lease) => lease?.jobId === sync));
    });

    test('a small job of a caller does not wait for most of its large one', async (t) => {
      const { engine } = await openEngine(t);
      await submitted(engine, 1_000, { caller: 'one' });
      const small = await submitted(engine, 1, { caller: 'one' });
      assert((await leasesUntil(engine, [small], 1)) <= 80);
    });

    test('an input that was submitted while it was left out keeps its place', async (t) => {
      const { engine } = await openEngine(t);
      const first = await submitted(engine, 40, { caller: 'one' });
      assert.equal((await leaseOne(engine))?.jobId, first);
      const ofCaller = await submitted(engine, 1, { caller: 'one', sync: true });
      assert.equal(await leaseOne(engine, { withoutCallers: ['one'] }), undefined);
      assert.equal((await leaseOne(engine))?.jobId, ofCaller);
      const ofOther = await submitted(engine, 1, { caller: 'two', sync: true });
      assert.equal((await leaseOne(engine, { onlyJobs: [first] }))?.jobId, first);
      assert.equal((await leaseOne(engine, { withoutJobs: [ofOther] }))?.jobId, first);
      assert.equal((await leaseOne(engine))?.jobId, ofOther);
    });

    test('leases leave out what needs a dependency that is away, and take it when that has been waited for too long', async (t) => {
      const { engine } = await openEngine(t);
      const needs = [['signer'], ['output_bucket:a_b', 'signer'], ['output_bucket:axb'], []];
      const jobId = await submitted(engine, 4, {}, needs);
      const taken = async (withoutDependencies: readonly string[], overdueBefore = new Date(0)) => {
        const filter = { withoutDependencies, overdueBefore: overdueBefore.toISOString() };
        const leases = await leaseAll(engine, filter);
        await releaseAll(engine, leases);
        return leases.map(({ inputIndex }) => inputIndex).sort();
      };
      assert.deepEqual(await taken(['signer']), [2, 3]);
      assert.deepEqual(await taken(['output_bucket:a_b']), [0, 2, 3]);
      assert.deepEqual(await taken([]), [0, 1, 2, 3]);
      const met = (await leaseAll(engine)).find(({ inputIndex }) => inputIndex === 3);
      assert(met !== undefined);
      await engine.queue.release(outageOf(met, 'scratch_folder', '2026-01-02T00:00:00.000Z'));
      assert.deepEqual(await taken(['scratch_folder']), []);
      assert.deepEqual(await taken(['scratch_folder'], new Date('2026-01-03')), [3]);
      const [waiting] = await engine.store.waitingInputs([jobId], []);
      assert.deepEqual(
        [waiting?.dependency, waiting?.count, waiting?.since, waiting?.error?.reason],
        ['scratch_folder', 1, '2026-01-02T00:00:00.000Z', 'SIGNATURE_FAILED'],
      );
    });

    test('leases leave out what needs another signer, however long it has waited, also where its node was lost', async (t) => {
      const { engine, openAfterKill } = await openEngine(t);
      const jobs = await Promise.all(
        [['signer:news'], ['signer:a_b'], ['signer'], ['output_folder']].map((needs) => {
          const [, identity = null] = needs[0]?.split('signer:') ?? [];
          return submitted(engine, 1, { identity }, [needs]);
        }),
      );
      const taken = async (onlySigners: readonly string[] | null) => {
        const leases = await leaseAll(engine, { onlySigners, overdueBefore: '2030-01-01' });
        await releaseAll(engine, leases);
        return leases.map(({ jobId }) => jobs.indexOf(jobId)).sort();
      };
      assert.deepEqual(await taken(null), [0, 1, 2, 3]);
      assert.deepEqual(await taken(['signer:news', 'signer']), [0, 2, 3]);
      assert.deepEqual(await taken(['signer:axb']), [3]);
      assert.deepEqual(await taken([]), [3]);
      assert.deepEqual(await taken(['signer:news', 'signer:a_b', 'signer']), [0, 1, 2, 3]);
      const [held] = await leaseAll(engine, { onlySigners: ['signer:news'], withoutJobs: jobs.slice(3) });
      assert(held !== undefined);
      await engine.queue.release(outageOf(held, 'signer:news'));
      assert.equal(
        await leaseOne(engine, { onlySigners: [], overdueBefore: '2030-01-01', withoutJobs: jobs.slice(3) }),
        undefined,
      );
      assert.equal(
        (await leaseOne(engine, { onlySigners: ['signer:news'], withoutJobs: jobs.slice(3) }))?.jobId,
        jobs[0],
      );
      const next = await openAfterKill();
      assert.equal(await leaseOne(next, { onlySigners: [], withoutJobs: jobs.slice(3) }), undefined);
    });

    test('the identities of unfinished jobs are known that are none of some', async (t) => {
      const { engine } = await openEngine(t);
      for (const identity of ['news', 'sport', 'weather', null]) await submitted(engine, 1, { identity });
      const beside = async (...names: string[]) => [...(await engine.store.identitiesBeside(names))].sort();
      assert.deepEqual(await beside(), ['news', 'sport', 'weather']);
      assert.deepEqual(await beside('weather', 'news'), ['sport']);
      assert.deepEqual(await beside('weather', 'sport', 'news', 'other'), []);
    });

    test('inputs that nobody tried have waited for too long once somebody recorded since when', async (t) => {
      const { engine } = await openEngine(t);
      const needs = [['signer:news'], ['signer:a_b'], ['signer:axb']];
      await submitted(engine, 3, {}, needs);
      const [met] = await leaseAll(engine, { onlySigners: ['signer:news'] });
      assert(met !== undefined);
      await engine.queue.release(outageOf(met, 'output_folder', '2026-01-05'));
      for (const day of ['2026-01-01', '2026-01-02'])
        for (const signer of ['signer:a_b', 'signer:news']) await engine.store.recordWaiting(signer, day);
      const overdue = await leaseAll(engine, { withoutDependencies: needs.flat(), overdueBefore: '2026-01-02' });
      const waited = overdue.map(({ inputIndex, waiting }) => [inputIndex, waiting?.dependency, waiting?.since]);
      assert.deepEqual(waited, [[1, 'signer:a_b', '2026-01-01']]);
    });

    test('an input that met an outage is queued again, and counts no failure', async (t) => {
      const { engine } = await openEngine(t);
      const jobId = await submitted(engine, 2, {}, [['signer'], ['signer']]);
      const lease = await leaseOne(engine);
      assert(lease !== undefined);
      assert.equal((await engine.queue.release(outageOf(lease, 'signer'))).input, 'queued');
      assert.equal(await leaseOne(engine, { withoutDependencies: ['signer'] }), undefined);
      assert.deepEqual(
        (await engine.store.waitingInputs([jobId], ['signer'])).map(({ dependency, count }) => [dependency, count]),
        [['signer', 2]],
      );
      assert.equal(await engine.store.countNeeding(['signer']), 2);
      assert.deepEqual(await engine.store.countWaiting(), [['signer', 1]]);
      const again = await leaseOne(engine);
      assert.deepEqual(
        [again?.inputIndex, again?.attempt, again?.transientFailures, again?.processExits],
        [0, 2, 0, 0],
      );
      assert.deepEqual(again?.waiting, { dependency: 'signer', since: '2026-01-01T00:00:00.000Z' });
    });

    test('leases leave out jobs and callers, and may be of some jobs only', async (t) => {
      const { engine } = await openEngine(t);
      const first = await submitted(engine, 40, { caller: 'one' });
      const second = await submitted(engine, 2, { caller: 'two' });
      const third = await submitted(engine, 1);
      assert.equal((await leaseOne(engine))?.jobId, first);
      const jobsOf = async (filter: Partial<LeaseRequest>) => (await leaseOne(engine, filter))?.jobId;
      assert.equal(await jobsOf({ withoutJobs: [first] }), second);
      assert.equal(await jobsOf({ withoutCallers: ['one', 'two'] }), third);
      assert.equal(await jobsOf({ withoutJobs: [third], withoutCallers: ['one', 'two'] }), undefined);
      assert.equal(await jobsOf({ onlyJobs: [second] }), second);
      assert.equal(await jobsOf({ onlyJobs: [second] }), undefined);
      assert.equal(await jobsOf({ onlyJobs: [] }), undefined);
      assert.equal((await leaseAll(engine)).length, 39);
    });
  });
}
