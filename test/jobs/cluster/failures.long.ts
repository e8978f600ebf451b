import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { AppError } from '#errors/app-error.ts';
import { MAX_EXTRA_SLOTS } from '#jobs/scheduling/slots.ts';
import { limitRepeats } from '#telemetry/repeat-limit.ts';
import { createJobsDatabase } from '../../support/jobs/jobs-database.ts';
import { ended, HANG_MS, keptLog, nodeConfig, scripts, startedJobs, until } from '../../support/jobs/test-jobs.ts';
import { startPostgres } from '../../support/servers/postgres-server.ts';
import { startProxy } from '../../support/servers/unreliable-proxy.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startTestService } from '../start-test-service.ts';

const server = await startPostgres({ after });
const folder = temporaryFolder();

const linesOf = async (file: string) => (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean);

/** Cancels statements as statement_timeout does, but only those that wait for the table of inputs, however slow others are. */
async function cancelWaiting(client: pg.Client, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await client.query(
      "select pg_cancel_backend(pid) from pg_locks where relation = 'inputs'::regclass and not granted",
    );
    await sleep(5);
  }
}

// Concurrent, for both wait until leases expire.
describe('a node that is lost', { concurrency: true }, () => {
  test('by a kill, one of two of three, leaves nothing undone, and nothing done twice that was done', async (t) => {
    const url = await createJobsDatabase(server);
    const outputs = join(folder, 'killed');
    const log = join(folder, 'killed.log');
    const start = () => startTestService(t, nodeConfig(temporaryFolder(), url));
    const [first, second, third] = await Promise.all([start(), start(), start()]);
    const batches = await Promise.all(
      Array.from({ length: 4 }, (_, batch) =>
        first.submit(
          scripts(
            Array.from({ length: 20 }, (_, index) => `sleep 100; write ${outputs}-${batch}-${index}; deliver ${log}`),
          ),
        ),
      ),
    );
    await until(async () => (await linesOf(log)).length >= 10);
    await Promise.all([first.kill(), second.kill()]);
    const done = await Promise.all(batches.map((jobId) => third.ended(jobId)));
    for (const job of done) assert.equal(job.status, 'succeeded', JSON.stringify(job));
    const written = (await readdir(folder)).filter((name) => name.startsWith('killed-'));
    assert.equal(written.length, 80);
    // At most what the killed nodes were at was done again.
    const mostLines = 80 + 2 * (2 + MAX_EXTRA_SLOTS);
    assert((await linesOf(log)).length <= mostLines, 'inputs that had ended were repeated');
  });

  test('by a partition leaves its inputs to another: what comes late delivers nothing', async (t) => {
    const url = await createJobsDatabase(server);
    const proxy = await startProxy(t, server.address);
    const through = proxy.through(url);
    const [log, gate, started] = ['partition.log', 'gate', 'started'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const cutOff = await startedJobs(t, { config: nodeConfig(temporaryFolder(), through) });
    const waiting = `append ${started}; wait-for ${gate}`;
    const { job_id: jobId } = await cutOff.submit(scripts([`${waiting}; deliver ${log}`, waiting]));
    await until(async () => (await linesOf(started)).length === 2);
    await server.query(url, 'update inputs set service_ends = 1');
    proxy.freeze();
    const other = await startedJobs(t, { config: nodeConfig(temporaryFolder(), url) });
    await until(async () => (await linesOf(started)).length === 4);
    await writeFile(gate, '');
    const job = await ended(other, jobId);
    assert.equal(job.status, 'succeeded');
    proxy.heal();
    await until(() => cutOff.healthy());
    await cutOff.stop(HANG_MS);
    // The process did not end, only its connection: that is not held against the inputs, and an earlier end still is.
    assert.deepEqual(await server.query(url, 'select service_ends from inputs'), [
      { service_ends: 1 },
      { service_ends: 1 },
    ]);
    const delivered = await linesOf(log);
    assert.deepEqual(
      delivered.map((line) => line.split(' ').slice(0, 2)),
      [['0', '2']],
    );
  });
});

describe('a database that is lost', () => {
  test('by a restart costs nothing, and is told of meanwhile', async (t) => {
    const url = await createJobsDatabase(server);
    const kept = keptLog();
    const jobs = await startedJobs(t, { config: nodeConfig(temporaryFolder(), url), log: limitRepeats(kept) });
    const log = join(folder, 'restart.log');
    const submitted = await Promise.all(
      Array.from({ length: 5 }, () => jobs.submit(scripts(Array(6).fill(`sleep 40; deliver ${log}`)))),
    );
    await until(async () => (await linesOf(log)).length > 3);
    await server.crash();
    const storeLines = () =>
      kept.lines.filter(({ message }) => message.startsWith('the job store ')).map(({ message }) => message);
    await until(() => storeLines().length === 1);
    await until(async () => !(await jobs.healthy()));
    const refusal = await jobs.submit(scripts(['progress 1'])).catch((error: unknown) => error);
    assert(refusal instanceof AppError, String(refusal));
    assert.equal(refusal.reason, 'DATABASE_UNREACHABLE');
    assert(refusal.isTransient);
    await server.start();
    for (const { job_id: jobId } of submitted) {
      const job = await ended(jobs, jobId);
      assert.equal(job.status, 'succeeded', JSON.stringify(job.results));
    }
    await until(() => jobs.healthy());
    assert.deepEqual(storeLines(), [
      'the job store is away: nothing is accepted or recorded',
      'the job store works again',
    ]);
    assert.equal((await ended(jobs, (await jobs.submit(scripts(['progress 1']))).job_id)).status, 'succeeded');
  });

  test('while nothing runs is not said to work before it does', async (t) => {
    const url = await createJobsDatabase(server);
    const kept = keptLog();
    const jobs = await startedJobs(t, { config: nodeConfig(temporaryFolder(), url), log: kept });
    const saysWorks = () => kept.lines.some(({ message }) => message === 'the job store works again');
    await server.crash();
    await until(() => kept.lines.some(({ message }) => message.startsWith('the job store is away')));
    // Renewals of its leases, which are none, go on every two seconds.
    await sleep(5_000);
    assert.equal(saysWorks(), false);
    await server.start();
    await until(saysWorks);
    assert.equal(await jobs.healthy(), true);
  });

  test('to writing only is told of, and jobs are taken again when it can be written', async (t) => {
    const url = await createJobsDatabase(server);
    const jobs = await startedJobs(t, { config: nodeConfig(temporaryFolder(), url) });
    assert.equal(await jobs.healthy(), true);
    const setReadOnly = async (value: 'on' | 'off') => {
      await server.query(url, `alter system set default_transaction_read_only = ${value}`);
      await server.query(url, 'select pg_reload_conf()');
    };
    await setReadOnly('on');
    try {
      await until(async () => !(await jobs.healthy()));
      assert.equal((await jobs.readiness()).ready, false);
    } finally {
      await setReadOnly('off');
    }
    await until(() => jobs.healthy());
    assert.equal((await ended(jobs, (await jobs.submit(scripts(['progress 1']))).job_id)).status, 'succeeded');
  });

  for (const cause of ['statements that it cancels', 'its lock_timeout']) {
    test(`by ${cause} costs nothing, and is told of meanwhile`, async (t) => {
      const url = await createJobsDatabase(server);
      const isByTimeout = cause === 'its lock_timeout';
      if (isByTimeout) {
        await server.query(url, `alter database ${url.slice(url.lastIndexOf('/') + 1)} set lock_timeout = 200`);
      }
      const jobs = await startedJobs(t, { config: nodeConfig(temporaryFolder(), url) });
      const own = temporaryFolder();
      const [log, gate, started] = [join(own, 'log'), join(own, 'gate'), join(own, 'started')];
      const { job_id: jobId } = await jobs.submit(scripts([`append ${started}; wait-for ${gate}; deliver ${log}`]));
      await until(async () => (await linesOf(started)).length === 1);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query('begin; lock table inputs in exclusive mode');
      const unlocked = new AbortController();
      const cancelling = isByTimeout ? null : cancelWaiting(client, unlocked.signal);
      await writeFile(gate, '');
      try {
        await until(async () => (await linesOf(log)).length === 1);
        for (let submissions = 0; submissions < 3; submissions += 1) {
          await assert.rejects(jobs.submit(scripts(['progress 1'])), {
            reason: 'DATABASE_TOO_SLOW',
            isTransient: true,
          });
        }
      } finally {
        unlocked.abort();
        await cancelling;
        await client.end();
      }
      const job = await ended(jobs, jobId);
      assert.equal(job.status, 'succeeded', JSON.stringify(job.results));
      assert.equal((await linesOf(log)).length, 1);
    });
  }

  test('by cut connections costs nothing', async (t) => {
    const url = await createJobsDatabase(server);
    const proxy = await startProxy(t, server.address);
    const through = proxy.through(url);
    const jobs = await startedJobs(t, { config: nodeConfig(temporaryFolder(), through) });
    const submitted = await Promise.all(
      Array.from({ length: 4 }, () => jobs.submit(scripts(Array(10).fill('sleep 20')))),
    );
    for (let cuts = 0; cuts < 5; cuts += 1) {
      await sleep(50);
      proxy.cut();
    }
    for (const { job_id: jobId } of submitted) assert.equal((await ended(jobs, jobId)).status, 'succeeded');
  });

  test('by cut connections fails no look-up', async (t) => {
    const url = await createJobsDatabase(server);
    const proxy = await startProxy(t, server.address);
    const through = proxy.through(url);
    const jobs = await startedJobs(t, { config: nodeConfig(temporaryFolder(), through) });
    const { job_id: jobId } = await jobs.submit(scripts(['progress 1']));
    let over = false;
    const looks = Array<number>(8).fill(0);
    const looking = Promise.all(
      looks.map(async (_, client) => {
        for (; !over; looks[client] = (looks[client] ?? 0) + 1) {
          assert.equal((await jobs.find(jobId))?.job_id, jobId);
        }
      }),
    );
    looking.catch(() => undefined);
    for (let cuts = 0; cuts < 20; cuts += 1) {
      proxy.cut();
      const before = [...looks];
      // Each client has begun a look after the cut and has its answer, or one that failed ends the wait.
      await Promise.race([looking, until(() => looks.every((count, client) => count >= (before[client] ?? 0) + 2))]);
    }
    over = true;
    await looking;
  });
});
