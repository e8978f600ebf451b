import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import { NO_PROGRESS, type Submission } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-ids.ts';
import type { JobEngine } from '#jobs/queue/job-queue.ts';
import { openPostgresEngine } from '#jobs/queue/postgres-engine.ts';
import { succeededEntry } from '#jobs/result-entries.ts';
import { MAX_SERVICE_EXITS, requeueInput } from '#jobs/store/finish-input.ts';
import type { FinishedInput, LeasedInput } from '#jobs/store/job-store.ts';
import { takeOverInput } from '#jobs/store/lease-inputs.ts';
import { migrations } from '#jobs/store/migrations.ts';
import { MessageQueue } from '#jobs/store/postgres/message-queue.ts';
import { openPostgres } from '#jobs/store/postgres/postgres-database.ts';
import { jobsLeftOut } from '#jobs/store/queue-state.ts';
import { submitJob } from '#jobs/store/submit-job.ts';
import type { JobReport } from '#telemetry/run-report.ts';
import { createJobsDatabase } from '../support/jobs/jobs-database.ts';
import { ALL_JOBS, releaseAll } from '../support/jobs/leases.ts';
import { NO_LOG, resultsOf, scripts, until } from '../support/jobs/test-jobs.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { describeJobQueue } from './queue-contract.ts';

const HOUR_MS = 3600 * 1000;
/** Migrations of the release whose job messages had an order, and whose inputs had none. */
const BEFORE_PRIORITIES = 8;
const ids = new JobIds();

const server = await startPostgres({ after });

/** Expires the leases of all messages, as when the heartbeats of a node stop. */
const expire = (url: string) =>
  server.query(
    url,
    "update attestream_deliveries.job_common set state = 'retry', retry_count = retry_count + 1 where state = 'active'",
  );

describeJobQueue('PostgreSQL', async (scope) => {
  const url = await createJobsDatabase(server);
  const open = async () => {
    const engine = await openPostgresEngine(url, 4, NO_LOG);
    scope.after(() => engine.close());
    return engine;
  };
  return {
    engine: await open(),
    openAfterKill: async () => {
      await expire(url);
      return open();
    },
    reopen: open,
  };
});

/** Opens a database of its own, as a node does. */
async function openNode(t: TestContext) {
  const url = await createJobsDatabase(server);
  const warnings: unknown[] = [];
  const log = { ...NO_LOG, warn: (fields: unknown) => warnings.push(fields) };
  const engine = await openPostgresEngine(url, 4, log);
  t.after(async () => {
    await engine.close();
    assert.deepEqual(warnings, []);
  });
  const submit = async (submission: Submission): Promise<string> => {
    const jobId = ids.next();
    await engine.store.submitJob({ ...submission, jobId, queuedAt: new Date() });
    return jobId;
  };
  const messagesLeft = async () => {
    const [left] = await server.query(url, 'select count(*)::integer as count from attestream_deliveries.job_common');
    return left?.['count'];
  };
  return { ...engine, url, submit, messagesLeft };
}

async function leaseOne({ queue }: Pick<JobEngine, 'queue'>): Promise<LeasedInput | undefined> {
  return (await queue.lease({ ...ALL_JOBS, count: 1 })).inputs[0];
}

const idsOf = (jobs: readonly JobReport[]) => jobs.map(({ jobId }) => jobId);

function resultOf(lease: LeasedInput): FinishedInput {
  const entry = succeededEntry(lease.inputIndex, { outputPath: '/out', warnings: [], manifestDigest: null });
  return { lease, entry, progress: NO_PROGRESS, digest: null };
}

describe('an input that changes hands', () => {
  test('is leased by the node that has its job message, also while the other node queues it again', async (t) => {
    const url = await createJobsDatabase(server);
    const database = await openPostgres(url, 4);
    t.after(() => database.close());
    const input = { jobId: ids.next(), inputIndex: 0 };
    await database.transaction((db) => submitJob(db, { ...scripts(['a']), jobId: input.jobId, queuedAt: new Date() }));
    const { lease } = await database.transaction((db) => takeOverInput(db, input));
    assert(lease !== null);
    const [queued, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const queuing = database.transaction(async (db) => {
      await requeueInput(db, lease);
      queued.resolve();
      await mayCommit.promise;
    });
    await queued.promise;
    const leasing = database.transaction((db) => takeOverInput(db, input));
    await until(async () => (await server.query(url, 'select 1 from pg_locks where not granted')).length > 0);
    mayCommit.resolve();
    await queuing;
    assert.equal((await leasing).lease?.attempt, 2);
  });

  test('was lost by its node: too often, and it fails', async (t) => {
    const { url, store, submit, messagesLeft, ...engine } = await openNode(t);
    const jobId = await submit(scripts(['a']));
    for (let time = 1; time <= MAX_SERVICE_EXITS; time += 1) {
      assert.equal((await leaseOne(engine))?.attempt, time);
      await expire(url);
    }
    const { inputs, finishedJobs } = await engine.queue.lease({ ...ALL_JOBS, count: 1 });
    assert.deepEqual([inputs, idsOf(finishedJobs)], [[], [jobId]]);
    assert.equal(resultsOf(await store.findJob(jobId))[0]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
    assert.equal(await messagesLeft(), 0);
  });

  test('is not held against it where its node is alive, and hands it in late', async (t) => {
    const { url, submit, messagesLeft, ...engine } = await openNode(t);
    await submit(scripts(['a']));
    for (let time = 0; time < MAX_SERVICE_EXITS + 2; time += 1) {
      const lost = await leaseOne(engine);
      assert(lost !== undefined, 'the input failed for connections that were lost');
      await expire(url);
      const taken = await leaseOne(engine);
      assert(taken !== undefined);
      const { input } = await (time % 2 === 0
        ? engine.queue.finish(resultOf(lost))
        : engine.queue.release({ lease: lost, reason: 'stopped' }));
      assert.equal(input, 'late');
      assert.equal(await messagesLeft(), 1, 'the message is the other node’s');
      await engine.queue.release({ lease: taken, reason: 'stopped' });
    }
  });

  test('finishes where its job was cancelled meanwhile', async (t) => {
    const { url, store, submit, messagesLeft, ...engine } = await openNode(t);
    const jobId = await submit(scripts(['a', 'b']));
    const lease = await leaseOne(engine);
    assert(lease !== undefined);
    await store.cancelJob(jobId);
    await expire(url);
    const { inputs, finishedJobs } = await engine.queue.lease({ ...ALL_JOBS, count: 5 });
    assert.deepEqual([inputs, idsOf(finishedJobs)], [[], [jobId]]);
    assert.equal((await engine.queue.finish(resultOf(lease))).input, 'late');
    assert.equal(await messagesLeft(), 0);
  });

  test('runs again after an exit of its process', async (t) => {
    const { store, submit, messagesLeft, ...engine } = await openNode(t);
    await submit(scripts(['a']));
    for (let exits = 0; exits < 3; exits += 1) {
      const lease = await leaseOne(engine);
      assert(lease !== undefined);
      assert.equal(lease.processExits, exits);
      assert.equal((await engine.queue.release({ lease, reason: 'process-exited' })).input, 'queued');
    }
    assert.equal(await messagesLeft(), 1);
  });
});

describe('recording a result', () => {
  test('deletes the message with the result', async (t) => {
    const { submit, messagesLeft, ...engine } = await openNode(t);
    await submit(scripts(['a', 'b']));
    const lease = await leaseOne(engine);
    assert(lease !== undefined);
    await engine.queue.finish(resultOf(lease));
    assert.equal(await messagesLeft(), 1);
  });

  test('erases the secrets of a job, and makes its callback due, with its last input', async (t) => {
    const { store, submit, ...engine } = await openNode(t);
    const inputs = [1, 2].map((index) => ({
      type: 'remote_file_url' as const,
      url: `https://host/${index}?key=secret`,
    }));
    const callbackUrl = 'https://host/done?token=1';
    const jobId = await submit({ operation: 'c2pa-video', request: { inputs }, sync: false, callbackUrl });
    const { inputs: leases } = await engine.queue.lease({ ...ALL_JOBS, count: 2 });
    for (const [index, lease] of leases.entries()) {
      assert.equal((await store.leaseCallbacks(10, 1_000)).length, 0);
      const { finishedJob } = await engine.queue.finish(resultOf(lease));
      assert.equal(finishedJob !== null, index === 1);
    }
    assert.equal((await store.leaseCallbacks(10, 1_000))[0]?.jobId, jobId);
    assert(!JSON.stringify(await store.pathsOfJob(jobId)).includes('secret'));
  });

  test('makes a callback due, and has one node send it, by a clock that all nodes share', async (t) => {
    const { store, submit, ...engine } = await openNode(t);
    const ofJob = { ...scripts(['a']), callbackUrl: 'https://host/done' };
    const finishedId = await submit(ofJob);
    const lease = await leaseOne(engine);
    assert(lease !== undefined);
    const cancelledId = await submit(ofJob);
    const realMs = Date.now();
    t.mock.timers.enable({ apis: ['Date'], now: realMs + HOUR_MS / 2 });
    await engine.queue.finish(resultOf(lease));
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

test('data of the release before opens and goes on, with jobs that wait and run', async (t) => {
  const url = await server.createDatabase();
  const [batch, sync] = [ids.next(), ids.next()];
  const before = await openPostgres(url, 4, migrations.slice(0, BEFORE_PRIORITIES));
  const messages = await MessageQueue.open(before, NO_LOG);
  await server.query(
    url,
    `insert into jobs (job_id, sync, status, queued_at, inputs_total) values
       ('${batch}', 0, 'running', '2026-11-21T10:00:00.000Z', 4), ('${sync}', 1, 'queued', '2026-11-21T10:00:00.000Z', 1);
     insert into job_requests (job_id, operation, output, params)
       select job_id, 'verify', 'null', 'null' from jobs;
     insert into inputs (job_id, input_index, status, attempt, input)
       select '${batch}', i, case when i = 0 then 'running' else 'queued' end, case when i = 0 then 1 else 0 end, '{}'
       from generate_series(0, 3) i;
     insert into inputs (job_id, input_index, status, input) values ('${sync}', 0, 'queued', '{}')`,
  );
  const sent = [0, -1, -1, -2].map((priority, inputIndex) => ({ jobId: batch, inputIndex, priority, needs: [] }));
  await before.transaction((db) =>
    messages.send(db, [...sent, { jobId: sync, inputIndex: 0, priority: 100, needs: [] }]),
  );
  await messages.close();
  await before.close();
  await server.query(url, `update attestream_deliveries.job_common set data = data || '{"sync":false}'`);

  const engine = await openPostgresEngine(url, 4, NO_LOG);
  t.after(() => engine.close());
  const { inputs } = await engine.queue.lease({ ...ALL_JOBS, count: 10 });
  assert.deepEqual(
    inputs.map(({ jobId, inputIndex, attempt, priority }) => [jobId, inputIndex, attempt, priority]).sort(),
    [[batch, 0, 2, 0], ...[1, 2, 3].map((index) => [batch, index, 1, index < 3 ? -1 : -2]), [sync, 0, 1, 100]].sort(),
  );
  await releaseAll(engine, inputs);
  const again = await engine.queue.lease({ ...ALL_JOBS, count: 10 });
  const ends = await Promise.all(again.inputs.map((lease) => engine.queue.finish(resultOf(lease))));
  assert.deepEqual(new Set(ends.flatMap(({ finishedJob }) => finishedJob?.jobId ?? [])), new Set([batch, sync]));
});

test('jobs that a node excludes are all of them, or refused where they are too many for a statement', async (t) => {
  const { url, database, submit } = { ...(await openNode(t)) };
  const submitAs = (caller: string) => submit({ ...scripts(['a']), caller });
  const [, other] = [await submitAs('busy'), await submitAs('other')];
  const addJobs = (count: number) =>
    server.query(
      url,
      `insert into jobs (job_id, sync, status, queued_at, inputs_total, caller)
       select gen_random_uuid(), 0, 'queued', '2030-01-01T00:00:00.000Z', 1, 'busy' from generate_series(1, ${count})`,
    );
  const countsOf = () =>
    database.read(async (db) => [
      (await jobsLeftOut(db, { ...ALL_JOBS, withoutCallers: ['busy'] }))?.length ?? null,
      (await jobsLeftOut(db, { ...ALL_JOBS, onlyJobs: [other] }))?.length ?? null,
    ]);
  await addJobs(9_999);
  assert.deepEqual(await countsOf(), [10_000, 10_000]);
  await addJobs(1);
  assert.deepEqual(await countsOf(), [null, null]);
});
