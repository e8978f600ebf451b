import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, type TestContext, test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '#config/config.ts';
import {
  type JobEngine,
  type JobQueue,
  type LeaseRequest,
  type NewLeases,
  QueueEvents,
} from '#jobs/queue/job-queue.ts';
import { Scheduler, type SchedulerOptions } from '#jobs/scheduler.ts';
import type { JobStore, LeasedInput, ReleasedInput } from '#jobs/store/job-store.ts';
import { WorkerPool } from '#workers/worker-pool.ts';
import { createJobsDatabase } from '../support/jobs/jobs-database.ts';
import {
  configFor,
  ended,
  NO_LOG,
  nodeConfig,
  SCRIPTED_WORKER,
  scripts,
  startedJobs,
  until,
} from '../support/jobs/test-jobs.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

function linesOf(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

/** Returns the most inputs that ran at once, of those that wrote a line at their start and one at their end. */
function mostAtOnce(file: string): number {
  const running = new Set<string>();
  const counts = linesOf(file).map((line) => {
    if (!running.delete(line)) running.add(line);
    return running.size;
  });
  return Math.max(...counts);
}

/** Runs the same tests on both queues. */
function schedulerContract(engine: string, configOf: (t: TestContext) => Promise<Config>): void {
  describe(`an extra worker (${engine})`, () => {
    test('does the input of another job while all others are busy for long', async (t) => {
      const jobs = await startedJobs(t, { config: await configOf(t) });
      const gate = join(temporaryFolder(), 'gate');
      const busy = await jobs.submit(scripts([`wait-for ${gate}`, `wait-for ${gate}`]));
      await until(async () => (await jobs.readiness()).workers.running === 2);
      const small = await jobs.submit(scripts(['progress 1'], { sync: true }));
      assert.equal((await ended(jobs, small.job_id)).status, 'succeeded');
      assert.equal((await jobs.find(busy.job_id))?.progress?.inputs_done, 0);
      await writeFile(gate, '');
      assert.equal((await ended(jobs, busy.job_id)).status, 'succeeded');
    });

    test('is not for other jobs of a caller that has an input running', async (t) => {
      const folder = temporaryFolder();
      const [gate, again] = [join(folder, 'gate'), join(folder, 'again')];
      const jobs = await startedJobs(t, { config: await configOf(t) });
      const submit = (inputs: readonly string[], caller: string) => jobs.submit(scripts(inputs, { caller }));
      const busy = await submit([`wait-for ${gate}`, `wait-for ${gate}`], 'busy');
      await until(async () => (await jobs.readiness()).workers.running === 2);
      const other = await submit([`append ${again}`], 'busy');
      const small = await submit(['progress 1'], 'other');
      assert.equal((await ended(jobs, small.job_id)).status, 'succeeded');
      assert(!existsSync(again));
      await writeFile(gate, '');
      for (const { job_id: jobId } of [busy, other]) await ended(jobs, jobId);
    });

    test('is not for jobs that have an input running, although these precede others', async (t) => {
      const folder = temporaryFolder();
      const [gate, third] = [join(folder, 'gate'), join(folder, 'third')];
      const jobs = await startedJobs(t, { config: await configOf(t), workerTimeouts: { idleMs: 100 } });
      const inputs = [`wait-for ${gate}`, `wait-for ${gate}`, `append ${third}`];
      const busy = await jobs.submit(scripts(inputs, { sync: true }));
      await until(async () => (await jobs.readiness()).workers.running === 2);
      const others = [1, 2].map((other) => join(folder, `other-${other}`));
      const submitted = [];
      for (const other of others) submitted.push(await jobs.submit(scripts([`append ${other}; wait-for ${gate}`])));
      await until(() => others.every((other) => existsSync(other)));
      assert(!existsSync(third));
      await writeFile(gate, '');
      for (const { job_id: jobId } of [busy, ...submitted]) await ended(jobs, jobId);
      await until(async () => (await jobs.readiness()).workers.processes === 0);
    });
  });

  describe(`an input that waits for a signature (${engine})`, () => {
    test('lets another one run, in a worker of its own', async (t) => {
      const folder = temporaryFolder();
      const [log, begun] = [join(folder, 'log'), join(folder, 'begun')];
      const jobs = await startedJobs(t, { config: await configOf(t), maxRunningInputs: 1 });
      const inputs = [`append ${log}; await-signature ${begun}`, `append ${log}; write ${begun}`];
      const job = await ended(jobs, (await jobs.submit(scripts(inputs))).job_id);
      assert.equal(job.status, 'succeeded');
      const lines = linesOf(log).map((line) => line.split(' '));
      assert.deepEqual(
        lines.map(([index, attempt]) => `${index} ${attempt}`),
        ['0 1', '1 1'],
      );
      assert.notEqual(lines[0]?.[2], lines[1]?.[2], 'the process');
    });

    test('is one of eight at most', async (t) => {
      const folder = temporaryFolder();
      const [log, gate] = [join(folder, 'log'), join(folder, 'gate')];
      const [signed, resumed] = [join(folder, 'signed'), join(folder, 'resumed')];
      const config = await configOf(t);
      const worker = { ...config.worker, default_max_files_parallel: 1 };
      const jobs = await startedJobs(t, { config: { ...config, worker }, maxRunningInputs: 1 });
      const waiting = `append ${log}; await-signature ${gate}`;
      const ninth = `append ${log}; await-signature ${signed}; append ${resumed}; wait-for ${gate}`;
      const inputs = [...Array(8).fill(waiting), ninth, ...Array(3).fill(waiting)];
      // An operation that needs no signer: while one is silent, nothing more is leased that needs it.
      const { job_id: jobId } = await jobs.submit(scripts(inputs, { caller: 'one', operation: 'package' }));
      await until(() => linesOf(log).length === 9);
      // The ninth says meanwhile that it waits.
      await sleep(200);
      await writeFile(signed, '');
      await until(() => existsSync(resumed));
      assert.equal((await jobs.readiness()).workers.processes, 9);
      await writeFile(gate, '');
      assert.equal((await ended(jobs, jobId)).status, 'succeeded');
    });

    test('that crashes harms no other', async (t) => {
      const folder = temporaryFolder();
      const [log, begun] = [join(folder, 'log'), join(folder, 'begun')];
      const jobs = await startedJobs(t, { config: await configOf(t), maxRunningInputs: 1 });
      const inputs = [`await-signature ${begun}; crash SIGSEGV`, `append ${log}; write ${begun}; sleep 200`];
      const { job_id: jobId } = await jobs.submit(scripts(inputs));
      const { results } = await ended(jobs, jobId);
      assert.equal(results[0]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
      assert.equal(results[1]?.status, 'succeeded');
      assert.equal(linesOf(log).length, 1);
    });
  });

  describe(`the scheduler (${engine})`, () => {
    test('starts nothing of a job that was cancelled while it was queued', async (t) => {
      const folder = temporaryFolder();
      const [gate, cancelled, next] = [join(folder, 'gate'), join(folder, 'cancelled'), join(folder, 'next')];
      const jobs = await startedJobs(t, { config: await configOf(t), maxRunningInputs: 1 });
      // Both of one caller, to whom no extra worker goes.
      const submit = (inputs: readonly string[]) => jobs.submit(scripts(inputs, { caller: 'one' }));
      const busy = await submit([`wait-for ${gate}`, 'progress 1']);
      await until(async () => (await jobs.readiness()).workers.running === 1);
      const queued = await submit([`write ${cancelled}`, `write ${cancelled}`]);
      await jobs.cancel(queued.job_id);
      await writeFile(gate, '');
      await ended(jobs, busy.job_id);
      await ended(jobs, (await jobs.submit(scripts([`write ${next}`]))).job_id);
      assert(!existsSync(cancelled));
    });

    test('fills its workers with inputs of several jobs, each up to its limit', async (t) => {
      const folder = temporaryFolder();
      const gate = join(folder, 'gate');
      const config = await configOf(t);
      const worker = { ...config.worker, default_max_files_parallel: 2 };
      const jobs = await startedJobs(t, { config: { ...config, worker }, maxRunningInputs: 4 });
      const files = ['one', 'other'].map((name) => join(folder, name));
      const submitted = [];
      for (const file of files)
        submitted.push(await jobs.submit(scripts(Array(30).fill(`append ${file}; wait-for ${gate}; append ${file}`))));
      await until(() => files.every((file) => linesOf(file).length === 2));
      await writeFile(gate, '');
      for (let single = 0; single < 30; single += 1) submitted.push(await jobs.submit(scripts(['progress 1'])));
      for (const { job_id: jobId } of submitted) assert.equal((await ended(jobs, jobId)).status, 'succeeded');
      for (const file of files) assert.deepEqual([linesOf(file).length, mostAtOnce(file)], [60, 2]);
    });

    test('fills its workers with inputs of the jobs that run, where no other job may start', async (t) => {
      const folder = temporaryFolder();
      const [gate, other] = [join(folder, 'gate'), join(folder, 'other')];
      const config = await configOf(t);
      const worker = { ...config.worker, max_concurrent_batches: 1 };
      const jobs = await startedJobs(t, { config: { ...config, worker }, maxRunningInputs: 3 });
      const batch = await jobs.submit(scripts(Array(6).fill(`wait-for ${gate}`)));
      await until(async () => (await jobs.readiness()).workers.running > 0);
      const next = await jobs.submit(scripts([`write ${other}`]));
      await until(async () => (await jobs.readiness()).workers.running === 3);
      assert(!existsSync(other));
      await writeFile(gate, '');
      for (const { job_id: jobId } of [batch, next]) assert.equal((await ended(jobs, jobId)).status, 'succeeded');
    });

    test('starts what was queued when the service stopped', async (t) => {
      const folder = temporaryFolder();
      const config = await configOf(t);
      const first = await startedJobs(t, { config, maxRunningInputs: 1 });
      const job = await first.submit(scripts([`wait-for ${join(folder, 'gate')}`, 'progress 1', 'progress 1']));
      await until(async () => (await first.readiness()).workers.running === 1);
      await first.stop(0);
      await writeFile(join(folder, 'gate'), '');
      const second = await startedJobs(t, { config, maxRunningInputs: 1 });
      assert.equal((await ended(second, job.job_id)).status, 'succeeded');
    });
  });
}

const LEASED: LeasedInput = {
  ...{ jobId: 'job', inputIndex: 0, attempt: 1, transientFailures: 0, processExits: 0, priority: 0 },
  ...{
    needs: [],
    waiting: null,
    caller: null,
    inputJson: '{"type":"local_file_path","path":"progress 1"}',
    request: null,
  },
};

/** A scheduler whose queue does nothing but what is given, and whose store cannot read requests. */
function schedulerOf(queue: Partial<JobQueue>, requestOfJob: JobStore['requestOfJob']): Scheduler {
  const options: SchedulerOptions = {
    pool: new WorkerPool({ entry: SCRIPTED_WORKER, config: configFor('/nowhere'), maxWorkers: 1, log: NO_LOG }),
    log: NO_LOG,
    ...{
      maxRunningInputs: 1,
      maxRunningInputsPerJob: 1,
      maxRunningJobs: 10,
      capacity: 10,
      outageHours: 24,
      retriesOutages: false,
      callers: () => [],
      defaultIdentity: () => 'default',
    },
    probes: { problemOf: async () => null, minPauseMs: () => 0 },
    clearStagings: async () => undefined,
    runEnded: () => undefined,
    inputFailed: () => undefined,
    jobFinished: () => undefined,
    jobFinishedElsewhere: () => undefined,
  };
  const store: Partial<JobStore> = { requestOfJob, countQueued: async () => new Map() };
  const events = new QueueEvents().stream;
  return new Scheduler(options, {
    store,
    queue: { isShared: false, renewalIntervalMs: 2_000, events, ...queue },
  } as JobEngine);
}

test('there are two extra workers at most, however long all are busy', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  let leases = 0;
  const lease = async () => {
    leases += 1;
    return { inputs: [{ ...LEASED, jobId: `job ${leases}` }], finishedJobs: [] };
  };
  const scheduler = schedulerOf({ lease }, () => new Promise<never>(() => undefined));
  await scheduler.begin();
  for (let seconds = 0; seconds < 10; seconds += 1) {
    await setImmediate();
    t.mock.timers.tick(1_000);
  }
  assert.deepEqual([scheduler.running, leases], [3, 3]);
});

test('a caller with nothing running gets an extra worker at once, whether or not the others stall', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const events = new QueueEvents();
  const requests: LeaseRequest[] = [];
  const leases = [[{ ...LEASED, caller: 'busy' }], [{ ...LEASED, jobId: 'other job', caller: 'other' }]];
  const lease = async (request: LeaseRequest) => {
    requests.push(request);
    return { inputs: leases.shift() ?? [], finishedJobs: [] };
  };
  const scheduler = schedulerOf({ lease, events: events.stream }, () => new Promise<never>(() => undefined));
  await scheduler.begin();
  for (const caller of ['busy', 'other']) {
    for (let turn = 0; turn < 10; turn += 1) await setImmediate();
    assert.deepEqual([scheduler.running, requests.length], [1, 1]);
    // As the queue does: before it is told that the submission is recorded.
    await scheduler.admission.admit({ caller, identity: null, needs: [[]] });
    events.push({ type: 'work' });
  }
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  assert.deepEqual([scheduler.running, requests[1]?.withoutCallers], [2, ['busy']]);
});

test('an input whose request cannot be read runs again after a pause', async () => {
  const released = Promise.withResolvers<ReleasedInput>();
  const leases = [[LEASED], []];
  const queue: Partial<JobQueue> = {
    lease: async () => ({ inputs: leases.shift() ?? [], finishedJobs: [] }),
    release: async (input) => {
      released.resolve(input);
      return { input: 'queued', finishedJob: null };
    },
  };
  const scheduler = schedulerOf(queue, () => Promise.reject(new TypeError('a defect of the statement')));
  const before = Date.now();
  await scheduler.begin();
  const first = await released.promise;
  assert(first.reason === 'transient-failure' && first.retryAt >= before + 1_000);
  await scheduler.stop(0);
});

test('an input that is leased while the service stops is returned', async () => {
  const leased = Promise.withResolvers<NewLeases>();
  const released: ReleasedInput[] = [];
  const queue: Partial<JobQueue> = {
    lease: () => leased.promise,
    release: async (input) => {
      released.push(input);
      return { input: 'queued', finishedJob: null };
    },
  };
  const request = {
    operation: 'c2pa-video',
    outputJson: 'null',
    paramsJson: 'null',
    traceParent: null,
    identity: null,
  } as const;
  const scheduler = schedulerOf(queue, async () => request);
  await scheduler.begin();
  const stopping = scheduler.stop(0);
  setTimeout(() => leased.resolve({ inputs: [LEASED], finishedJobs: [] }), 20);
  await stopping;
  assert.deepEqual(released, [{ lease: LEASED, reason: 'stopped' }]);
});

schedulerContract('embedded', async () => configFor(temporaryFolder()));

const server = await startPostgres({ after });

schedulerContract('PostgreSQL', async () => nodeConfig(temporaryFolder(), await createJobsDatabase(server)));
