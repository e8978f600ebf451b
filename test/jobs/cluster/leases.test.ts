import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { LeaseAndComplete } from '#jobs/cluster/lease-and-complete.ts';
import { type LeasedMessage, LeaseTimer, leaseClock } from '#jobs/cluster/leased-inputs.ts';
import { Persistence } from '#jobs/dispatching/work-source.ts';
import { NO_PROGRESS, type Submission } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-ids.ts';
import { succeededEntry } from '#jobs/result-entries.ts';
import { requeueInput } from '#jobs/store/finish-input.ts';
import { leaseInput } from '#jobs/store/lease-inputs.ts';
import { openPostgres } from '#jobs/store/postgres/postgres-database.ts';
import {
  type CompletedMessage,
  openPostgresStore,
  type ReceivedMessage,
} from '#jobs/store/postgres/postgres-job-store.ts';
import { submitJob } from '#jobs/store/submit-job.ts';
import { createJobsDatabase } from '../../support/jobs/jobs-database.ts';
import { NO_LOG, scripts, until } from '../../support/jobs/test-jobs.ts';
import { startPostgres } from '../../support/servers/postgres-server.ts';

const HOUR_MS = 3600 * 1000;

const server = await startPostgres({ after });

describe('a lease', () => {
  test('is over by its own clock, counted from before it was asked for', () => {
    let now = 1_000;
    const lease = new LeaseTimer(() => now, 900, 500);
    assert(lease.covers(400));
    assert(!lease.covers(401));
    now = 1_400;
    assert(lease.covers(0));
    now = 1_401;
    assert(!lease.covers(0));
  });

  test('holds on from a renewal, and never shorter for one that was asked for before', async () => {
    const now = 1_000;
    const lease = new LeaseTimer(() => now, 1_000, 500);
    const { renewed } = lease;
    lease.renew(900);
    await renewed;
    assert(lease.covers(500));
    lease.renew(1_200);
    assert(lease.covers(700));
  });

  test('is timed by a clock that never goes back', () => {
    const clock = leaseClock();
    const looks = Array.from({ length: 1_000 }, clock);
    assert.deepEqual(
      looks,
      looks.toSorted((a, b) => a - b),
    );
  });

  test('is timed by a clock that goes on when the one on the wall is set back', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 10 * HOUR_MS });
    const clock = leaseClock();
    const start = clock();
    t.mock.timers.setTime(15 * HOUR_MS);
    assert(clock() > start + 4 * HOUR_MS, 'a suspension was not noticed');
    t.mock.timers.setTime(9 * HOUR_MS);
    const setBack = clock();
    await setImmediate();
    assert(clock() > setBack, 'the clock stands still');
    t.mock.timers.setTime(10 * HOUR_MS);
    assert(clock() > setBack + HOUR_MS / 2, 'a later suspension was not noticed');
  });
});

describe('an input that changes hands', () => {
  test('is leased by the node that has its job message, also while the other node queues it again', async (t) => {
    const url = await createJobsDatabase(server);
    const database = await openPostgres(url, 4);
    t.after(() => database.close());
    const input = { jobId: jobIds.next(), inputIndex: 0 };
    const job = { ...scripts(['a']), jobId: input.jobId, queuedAt: new Date() };
    await database.transaction((db) => submitJob(db, job));
    const { lease } = await database.transaction((db) => leaseInput(db, input));
    assert(lease !== null);
    const [queued, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const queuing = database.transaction(async (db) => {
      await requeueInput(db, lease);
      queued.resolve();
      await mayCommit.promise;
    });
    await queued.promise;
    const leasing = database.transaction((db) => leaseInput(db, input));
    await until(async () => (await server.query(url, 'select 1 from pg_locks where not granted')).length > 0);
    mayCommit.resolve();
    await queuing;
    assert.equal((await leasing).lease?.attempt, 2);
  });
});

const CLIENTS = 8;
const INPUTS = 60;
const jobIds = new JobIds();

function completedOf({ message, leased }: ReceivedMessage): CompletedMessage[] {
  if (leased === null) return [];
  const { lease } = leased;
  const entry = succeededEntry(lease.inputIndex, { outputPath: '/out', warnings: [], manifestDigest: null });
  return [{ lease, message, entry, progress: NO_PROGRESS, digest: null }];
}

/** Opens a database of its own, as a node does. */
async function openNode(t: TestContext) {
  const url = await createJobsDatabase(server);
  const warnings: unknown[] = [];
  const log = { ...NO_LOG, warn: (fields: unknown) => warnings.push(fields) };
  const store = await openPostgresStore(url, CLIENTS + 1, log);
  t.after(async () => {
    await store.close();
    assert.deepEqual(warnings, []);
  });
  const submit = async (submission: Submission): Promise<string> => {
    const jobId = jobIds.next();
    await store.submitJob({ ...submission, jobId, queuedAt: new Date() });
    return jobId;
  };
  const messagesLeft = async () => {
    const [left] = await server.query(url, 'select count(*)::integer as count from attestream_deliveries.job_common');
    return left?.['count'];
  };
  /** Expires the lease of every message, as when the heartbeats of a node stop. */
  const expire = () =>
    server.query(url, "update attestream_deliveries.job_common set state = 'retry', retry_count = retry_count + 1");
  return { store, submit, messagesLeft, expire };
}

describe('recording results together with new leases', () => {
  test('counts every result once, and finishes every job once, with several nodes at the same jobs', async (t) => {
    const { store, submit, messagesLeft } = await openNode(t);
    const jobs: string[] = [];
    for (let job = 0; job < 3; job += 1) jobs.push(await submit(scripts(Array(INPUTS).fill('a'))));
    const ended: string[] = [];
    let recordedCount = 0;
    const client = async () => {
      let finished: CompletedMessage[] = [];
      do {
        const done = await store.leaseAndComplete(finished, 2, []);
        recordedCount += done.completed.length;
        ended.push(...done.completed.filter(({ jobFinished }) => jobFinished).map(({ jobId }) => jobId));
        finished = done.received.flatMap(completedOf);
      } while (finished.length > 0 || recordedCount < jobs.length * INPUTS);
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    assert.deepEqual(ended.sort(), [...jobs].sort());
    for (const jobId of jobs) assert.equal((await store.findJob(jobId))?.status, 'succeeded');
    assert.equal(await messagesLeft(), 0);
  });

  test('refuses a late result, and leaves its message to the node that has it', async (t) => {
    const { store, submit, messagesLeft } = await openNode(t);
    const jobId = await submit(scripts(['a']));
    const { received } = await store.leaseAndComplete([], 1, []);
    const { lease } = await store.leaseInput({ jobId, inputIndex: 0 });
    assert.equal(lease?.attempt, 2);
    const { completed } = await store.leaseAndComplete(received.flatMap(completedOf), 0, []);
    assert.deepEqual(completed, []);
    assert.equal((await store.findJob(jobId))?.status, 'running');
    assert.equal(await messagesLeft(), 1);
  });

  test('leaves an input to the node that received its message while this node was suspended', async (t) => {
    const { store, submit, expire } = await openNode(t);
    const jobId = await submit(scripts(['a']));
    const take = () => store.leaseAndComplete([], 1, []);
    await take();
    await expire();
    let writes = 0;
    class Suspended extends Persistence {
      override async write<T>(write: () => Promise<T>): Promise<T | undefined> {
        writes += 1;
        if (writes === 2) {
          await expire();
          assert.equal((await take()).received.length, 1);
        }
        return await super.write(write);
      }
    }
    const persistence = new Suspended(NO_LOG, new AbortController().signal);
    const started: LeasedMessage[] = [];
    const capacities = [1];
    const exchange = new LeaseAndComplete({
      store,
      persistence,
      clock: () => performance.now(),
      capacity: () => capacities.pop() ?? 0,
      excludedJobs: async () => [],
      start: (leased) => started.push(leased),
    });
    exchange.wake();
    await exchange.idle();
    exchange.close();
    assert.deepEqual([started, writes], [[], 2]);
    const { lease } = await store.leaseInput({ jobId, inputIndex: 0 });
    assert.equal(lease?.attempt, 2);
  });

  test('erases the secrets of a job, and makes its callback due, with its last input', async (t) => {
    const { store, submit } = await openNode(t);
    const inputs = [1, 2].map((index) => ({
      type: 'remote_file_url' as const,
      url: `https://host/${index}?key=secret`,
    }));
    const request = { inputs };
    const jobId = await submit({
      operation: 'c2pa-video',
      request,
      sync: false,
      callbackUrl: 'https://host/done?token=1',
    });
    const { received } = await store.leaseAndComplete([], 2, []);
    for (const [index, one] of received.entries()) {
      assert.equal((await store.leaseCallbacks(10, 1_000)).length, 0);
      const { completed } = await store.leaseAndComplete(completedOf(one), 0, []);
      assert.deepEqual(
        completed.map(({ jobFinished }) => jobFinished),
        [index === 1],
      );
    }
    assert.equal((await store.leaseCallbacks(10, 1_000))[0]?.jobId, jobId);
    const places = await store.pathsOfJob(jobId);
    assert(!JSON.stringify(places).includes('secret'));
  });

  test('makes a callback due, and has one node send it, by a clock that all nodes share', async (t) => {
    const { store, submit } = await openNode(t);
    const ofJob = { ...scripts(['a']), callbackUrl: 'https://host/done' };
    const finishedId = await submit(ofJob);
    const { received } = await store.leaseAndComplete([], 1, []);
    const cancelledId = await submit(ofJob);
    const realMs = Date.now();
    t.mock.timers.enable({ apis: ['Date'], now: realMs + HOUR_MS / 2 });
    for (const one of received) await store.leaseAndComplete(completedOf(one), 0, []);
    await store.cancelJob(cancelledId);
    t.mock.timers.setTime(realMs);
    const leased = await store.leaseCallbacks(10, HOUR_MS / 2);
    assert.deepEqual(new Set(leased.map(({ jobId }) => jobId)), new Set([finishedId, cancelledId]));
    for (const hoursAhead of [5, -5]) {
      t.mock.timers.setTime(realMs + hoursAhead * HOUR_MS);
      assert.deepEqual(await store.leaseCallbacks(10, HOUR_MS / 2), []);
    }
  });
});
