import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import { AppError } from '#errors/app-error.ts';
import { DeniedNetworks } from '#inputs/guarded-request.ts';
import { guardedPost } from '#jobs/callback-sender.ts';
import type { Jobs } from '#jobs/jobs.ts';
import type { QueueEvent } from '#jobs/queue/job-queue.ts';
import { openCluster } from '#jobs/queue/postgres-engine.ts';
import { NotificationListener } from '#jobs/store/postgres/notifications.ts';
import type { Signers } from '#provenance/signers.ts';
import { inertSigner } from '../../support/jobs/inert-signer.ts';
import { createJobsDatabase } from '../../support/jobs/jobs-database.ts';
import {
  ended,
  HANG_MS,
  keptLog,
  NO_LOG,
  nodeConfig,
  resultsOf,
  scripts,
  startedJobs,
  until,
} from '../../support/jobs/test-jobs.ts';
import { startReceiver } from '../../support/servers/callback-receiver.ts';
import { startPostgres } from '../../support/servers/postgres-server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const AHEAD = new Date('2100-01-01');
const ENDED = new Date('2020-01-01');

const server = await startPostgres({ after });

const folder = temporaryFolder();

/** Nodes of this process that share a database. */
async function nodes(t: TestContext, roles: readonly Config['jobs']['role'][]): Promise<[Jobs, ...Jobs[]]> {
  const url = await createJobsDatabase(server);
  const folders = await Promise.all(roles.map(() => temporaryFolder()));
  const configs = folders.map((dataDir, index) => nodeConfig(dataDir, url, { role: roles[index] ?? 'all' }));
  return (await Promise.all(configs.map((config) => startedJobs(t, { config })))) as [Jobs, ...Jobs[]];
}

/** Nodes of this process that share a database, and send callbacks. */
async function callingNodes(t: TestContext, roles: readonly Config['jobs']['role'][]): Promise<[Jobs, ...Jobs[]]> {
  const url = await createJobsDatabase(server);
  const post = guardedPost(new DeniedNetworks([]));
  const started = roles.map(async (role) => {
    const config = nodeConfig(temporaryFolder(), url, { role });
    const callbacks = { secret: 'a secret of the tests' };
    const callbackLimits = { attemptMs: HANG_MS, pollIntervalMs: 20 };
    return startedJobs(t, { config: { ...config, callbacks }, post, callbackLimits });
  });
  return (await Promise.all(started)) as [Jobs, ...Jobs[]];
}

test('a listener ignores what other programs, and nodes of other releases, send on the channel', async (t) => {
  const url = await server.createDatabase();
  const received: QueueEvent[] = [];
  const listener = new NotificationListener(url, NO_LOG, (one) => received.push(one));
  t.after(() => listener.close());
  await until(() => received.length > 0);
  const foreign = [
    '',
    'no JSON',
    'null',
    '{"type":"later","jobId":"a"}',
    '{"type":"ended"}',
    '{"type":"cancelled","jobId":1}',
  ];
  for (const payload of [...foreign, '{"type":"ended","jobId":"b"}'])
    await server.query(url, `select pg_notify('attestream', '${payload}')`);
  await until(() => received.length > 1);
  assert.deepEqual(received, [{ type: 'work' }, { type: 'finished', jobId: 'b' }]);
});

describe('nodes that share a database', () => {
  test('do a job to its end, and every one of them tells of it', async (t) => {
    const [first, second = first] = await nodes(t, ['all', 'all']);
    const { job_id: jobId } = await first.submit(scripts(['progress 10', 'fail /nowhere', 'progress 5']));
    const job = await ended(second, jobId);
    assert.equal(job.status, 'failed');
    assert.deepEqual(
      job.results.map(({ status }) => status),
      ['succeeded', 'failed', 'succeeded'],
    );
    assert.deepEqual(await ended(first, jobId), job);
  });

  test('spread a batch over all of them', async (t) => {
    const [first, second = first] = await nodes(t, ['all', 'all']);
    const [log, gate] = [join(folder, 'spread-log'), join(folder, 'spread-gate')];
    const { job_id: jobId } = await first.submit(scripts(Array(24).fill(`append ${log}; wait-for ${gate}`)));
    const distinct = async (pattern: RegExp): Promise<number> =>
      new Set((await readFile(log, 'utf8').catch(() => '')).match(pattern)).size;
    // Its lines end with processes: two workers on each of two nodes.
    await until(async () => (await distinct(/\d+$/gm)) === 4);
    await writeFile(gate, '');
    assert.equal((await ended(second, jobId)).status, 'succeeded');
    assert.equal(await distinct(/^\d+/gm), 24, 'its lines begin with inputs');
  });

  test('keep to their roles', async (t) => {
    const [taking, doing = taking] = await nodes(t, ['api', 'worker']);
    const refusal = await doing.submit(scripts(['progress 1'])).catch((error: unknown) => error);
    assert(refusal instanceof AppError);
    assert.equal(refusal.reason, 'NODE_TAKES_NO_JOBS');
    assert.equal((await taking.readiness()).workers.limit, 0);
    const { job_id: jobId } = await taking.submit(scripts(['progress 1']));
    assert.equal((await ended(taking, jobId)).status, 'succeeded');
  });

  test('tell how far inputs are that others run, and cancel them', async (t) => {
    const [taking] = await nodes(t, ['api', 'worker']);
    const inputs = ['progress 70; sleep for-ever', 'sleep for-ever', 'sleep for-ever'];
    const { job_id: jobId } = await taking.submit(scripts(inputs));
    await until(async () => (await taking.find(jobId))?.progress?.bytes_done === 70);
    const [listed] = (await taking.list({ limit: 1 })).jobs;
    assert.deepEqual(listed?.progress, (await taking.find(jobId))?.progress);
    assert.equal(listed?.progress?.fraction, 1 / 3);
    assert.equal((await taking.cancel(jobId))?.changed, true);
    const job = await ended(taking, jobId);
    assert.deepEqual(
      job.results.map(({ status }) => status),
      ['cancelled', 'cancelled', 'cancelled'],
    );
  });

  test('grant a destination to one input of a job, whichever node it is on', async (t) => {
    const [first] = await nodes(t, ['all', 'all', 'all']);
    const claims = [
      'claim /out/x',
      'claim /out/x/inside',
      'claim /out/y',
      'claim /out/x',
      'claim /out/x',
      'claim /out',
    ];
    const job = await ended(first, (await first.submit(scripts(claims.map((claim) => `${claim}; sleep 50`)))).job_id);
    const refused = job.results.filter((entry) => entry.error_details?.reason === 'OUTPUT_TAKEN');
    assert(refused.length >= 3, JSON.stringify(job.results));
  });

  test('replace no output of a job that they retry', async (t) => {
    const [first] = await nodes(t, ['all', 'all']);
    const { job_id: jobId } = await first.submit(scripts(['progress 1', 'fail /nowhere']));
    await ended(first, jobId);
    const retry = await first.submit({ ...scripts(['claim /out/0']), retriedFrom: jobId });
    assert.equal((await ended(first, retry.job_id)).results[0]?.error_details?.reason, 'OUTPUT_TAKEN');
  });

  test('do one-file jobs while a large batch is under way, those that somebody waits for first', async (t) => {
    const [first] = await nodes(t, ['all']);
    const [log, gate] = [join(folder, 'batch-log'), join(folder, 'batch-gate')];
    // All of one caller, to whom no extra worker goes. The first two inputs hold both workers, and write no line.
    const submit = (inputs: readonly string[], sync = false) => first.submit(scripts(inputs, { caller: 'one', sync }));
    await submit([...Array(2).fill(`wait-for ${gate}`), ...Array(998).fill(`append ${log}`)]);
    await until(async () => (await first.readiness()).workers.running === 2);
    const singles = [await submit([`append ${log}`]), await submit([`append ${log}`], true)];
    await writeFile(gate, '');
    for (const { job_id: jobId } of singles) await ended(first, jobId);
    const before = (await readFile(log, 'utf8')).split('\n').findLastIndex((line) => line.startsWith('0 '));
    assert(before < 500, `${before} inputs of the batch went first`);
  });

  test('refuse what does not fit into the queue they share', async (t) => {
    const url = await createJobsDatabase(server);
    const config = nodeConfig(temporaryFolder(), url, { role: 'api' });
    const jobs = await startedJobs(t, { config: { ...config, worker: { ...config.worker, queue_capacity: 3 } } });
    await jobs.submit(scripts(['progress 1', 'progress 1']));
    const refusal = await jobs.submit(scripts(['progress 1', 'progress 1'])).catch((error: unknown) => error);
    assert(refusal instanceof AppError);
    assert.equal(refusal.reason, 'QUEUE_FULL');
  });

  test('keep the part of each caller in the queue they share', async (t) => {
    const url = await createJobsDatabase(server);
    const { auth } = configSchema.parse({ auth: { tokens: ['crowd', 'calm'].map((name) => ({ name, token: name })) } });
    const start = () => {
      const config = nodeConfig(temporaryFolder(), url, { role: 'api' });
      return startedJobs(t, { config: { ...config, auth, worker: { ...config.worker, queue_capacity: 8 } } });
    };
    const [first, second] = [await start(), await start()];
    const submit = (jobs: Jobs, caller: string, count: number) =>
      jobs.submit(scripts(Array<string>(count).fill('progress 1'), { caller }));
    const { job_id: jobId } = await submit(first, 'crowd', 6);
    await until(async () => (await second.readiness()).queue.waiting === 6);
    await assert.rejects(submit(second, 'crowd', 1), { code: 'CALLER_LIMIT', reason: 'CALLER_QUEUE_FULL' });
    await submit(second, 'calm', 2);
    await first.cancel(jobId);
    await until(async () => (await second.readiness()).queue.waiting === 2);
    await submit(second, 'crowd', 6);
  });

  test('fail an input alone that ends its process three times', async (t) => {
    const [first] = await nodes(t, ['all', 'all']);
    const job = await ended(first, (await first.submit(scripts(['exit 7', 'progress 1']))).job_id);
    assert.deepEqual(
      job.results.map((entry) => entry.error_details?.reason),
      ['INPUT_ENDED_PROCESS', undefined],
    );
  });

  test('queue again what does not end within the grace of a node that stops, and another does it', async (t) => {
    const url = await createJobsDatabase(server);
    const [log, gate] = ['log', 'gate'].map((name) => join(folder, name));
    const first = await startedJobs(t, { config: nodeConfig(temporaryFolder(), url) });
    const { job_id: jobId } = await first.submit(scripts([`append ${log}; wait-for ${gate}`]));
    await until(async () => existsSync(String(log)));
    await first.stop(1);
    await writeFile(String(gate), '');
    const second = await startedJobs(t, { config: nodeConfig(temporaryFolder(), url) });
    assert.equal((await ended(second, jobId)).status, 'succeeded');
    assert.match(await readFile(String(log), 'utf8'), /^0 1 .*\n0 2 /);
  });

  test('keep a data folder each', async (t) => {
    const url = await createJobsDatabase(server);
    const config = nodeConfig(folder, url);
    await startedJobs(t, { config });
    await assert.rejects(startedJobs(t, { config }), { reason: 'STORE_IN_USE' });
  });

  test('make one job of what is sent to all of them with the same idempotency key', async (t) => {
    const all = await callingNodes(t, ['all', 'api', 'all']);
    const submission = { ...scripts(['progress 1']), idempotency: { key: 'k', digest: 'd' } };
    const submitted = await Promise.all([...all, ...all, ...all].map((node) => node.submit(submission)));
    assert.equal(new Set(submitted.map((job) => job.job_id)).size, 1);
    assert.equal(submitted.filter((job) => !job.replayed).length, 1);
    assert.equal((await all[0].list({ limit: 10 })).jobs.length, 1);
    assert.equal((await ended(all[0], submitted[0]?.job_id ?? '')).status, 'succeeded');
  });

  test('tell what happens to jobs that others run', async (t) => {
    const [taking] = await callingNodes(t, ['api', 'worker']);
    const { job_id: jobId } = await taking.submit(scripts(['sleep 300', 'fail /x', 'progress 1']));
    const told: number[] = [];
    let last = '';
    for await (const { type, job } of (await taking.events(jobId, new AbortController().signal)) ?? []) {
      if (type === 'input') told.push(...resultsOf(job).map((entry) => entry.input_index));
      last = type;
    }
    assert.equal(last, 'done');
    // A job that finished before it was followed reports everything with its end.
    assert.ok(told.length === 0 || told.length === 3);
  });

  test('send a callback once where it is taken, whichever of them ends the job', async (t) => {
    const receiver = await startReceiver(t);
    const [taking] = await callingNodes(t, ['api', 'worker', 'all']);
    const jobs = Array.from({ length: 10 }, () =>
      taking.submit({ ...scripts(['progress 1']), callbackUrl: receiver.url }),
    );
    const ids = (await Promise.all(jobs)).map((job) => job.job_id);
    await receiver.came(10);
    await sleep(200);
    assert.deepEqual(receiver.received.map(({ body }) => JSON.parse(body).job_id).sort(), ids.sort());
  });
});

describe('nodes of which the settings differ', () => {
  /** The configuration of a node that writes outputs to a folder. */
  async function nodeWith(url: string, baseDir: string): Promise<Config> {
    const config = nodeConfig(temporaryFolder(), url);
    return { ...config, output_sinks: { local: { ...config.output_sinks.local, base_dir: baseDir } } };
  }

  /** Records a node that was lost some time ago. */
  async function loseNode(url: string, baseDir: string, agoMs: number): Promise<void> {
    const settings = JSON.stringify({ outputRoots: { 'output_sinks.local.base_dir': baseDir }, identity: null });
    await server.query(
      url,
      `insert into nodes values ('lost', 'elsewhere', '${settings}', extract(epoch from clock_timestamp()) * 1000 - ${agoMs})`,
    );
  }

  test('do not start with another output root, until all others have stopped', async (t) => {
    const url = await createJobsDatabase(server);
    const first = await startedJobs(t, { config: await nodeWith(url, '/one') });
    await startedJobs(t, { config: await nodeWith(url, '/one') }).then((same) => same.stop(0));
    const config = await nodeWith(url, '/other');
    await assert.rejects(startedJobs(t, { config }), (error: AppError) => {
      assert.equal(error.reason, 'NODE_OUTPUTS_DIFFER');
      assert.deepEqual((error.details as { differences: unknown }).differences, [
        { key: 'output_sinks.local.base_dir', here: '/other', there: '/one' },
      ]);
      return true;
    });
    await first.stop(0);
    await startedJobs(t, { config });
  });

  test('do not start with another S3 server, however the name of the same one is written', async (t) => {
    const url = await createJobsDatabase(server);
    const nodeAt = async (endpoint?: string): Promise<Config> => {
      const config = await nodeWith(url, '/one');
      const s3 = { buckets: ['bucket'], ...(endpoint !== undefined && { endpoint_url: endpoint }) };
      const { output_sinks: sinks } = configSchema.parse({ output_sinks: { s3 } }) as Config;
      return { ...config, output_sinks: { ...sinks, local: config.output_sinks.local } };
    };
    await startedJobs(t, { config: await nodeAt('https://s3.example.com') });
    await startedJobs(t, { config: await nodeAt('https://S3.example.com:443/') });
    for (const other of ['https://other.example.com', undefined])
      await assert.rejects(startedJobs(t, { config: await nodeAt(other) }), { reason: 'NODE_OUTPUTS_DIFFER' });
  });

  test('start where a node with another output root was lost', async (t) => {
    const url = await createJobsDatabase(server);
    await startedJobs(t, { config: await nodeWith(url, '/one') }).then((jobs) => jobs.stop(0));
    await loseNode(url, '/other', 9_000);
    await startedJobs(t, { config: await nodeWith(url, '/one') });
  });

  test('start one alone of several that start first, and together', async (t) => {
    const url = await server.createDatabase();
    const configs = await Promise.all(['/one', '/other', '/third'].map((baseDir) => nodeWith(url, baseDir)));
    const starts = await Promise.allSettled(configs.map((config) => startedJobs(t, { config })));
    const refusals = starts.flatMap((start) =>
      start.status === 'rejected' ? [(start.reason as AppError).reason] : [],
    );
    assert.deepEqual(refusals, ['NODE_OUTPUTS_DIFFER', 'NODE_OUTPUTS_DIFFER']);
  });

  test('start with another signing identity, and warn of it', async (t) => {
    const url = await createJobsDatabase(server);
    const warnings = async (certificate: string): Promise<number> => {
      const log = keptLog();
      const { signer } = inertSigner(AHEAD, certificate);
      const { close } = await openCluster(url, {
        config: await nodeWith(url, '/one'),
        identities: signer,
        log,
      });
      t.after(close);
      return log.lines.filter(({ level }) => level === 'warn').length;
    };
    assert.deepEqual([await warnings('one'), await warnings('one'), await warnings('two')], [0, 0, 1]);
  });

  test('tell of one whose heartbeat stopped, once', async (t) => {
    const url = await createJobsDatabase(server);
    const log = keptLog();
    const { otherNodes, close } = await openCluster(url, { config: await nodeWith(url, '/one'), log });
    t.after(close);
    const client = new pg.Client(url);
    await client.connect();
    t.after(() => client.end());
    await client.query(`insert into nodes (node_id, name, settings, seen_at_ms)
      values ('lost', 'a host', '{"outputRoots":{},"identity":null}', extract(epoch from now()) * 1000 - 20000)`);
    await until(() =>
      log.lines.some(({ level, message }) => level === 'warn' && message.startsWith('a node was lost')),
    );
    assert.deepEqual(
      otherNodes()?.map(({ name, isAlive }) => [name, isAlive]),
      [['a host', false]],
    );
    assert.equal(log.lines.filter(({ level }) => level === 'warn').length, 1);
  });

  test('take jobs that sign while one of them has a valid identity, and others always', async (t) => {
    const url = await createJobsDatabase(server);
    const start = (role: Config['jobs']['role'], signer?: Signers) =>
      startedJobs(t, { config: nodeConfig(temporaryFolder(), url, { role }), ...(signer && { signer }) });
    const answerOf = (jobs: Jobs) =>
      jobs.submit(scripts(['progress 1'])).then(
        ({ status }) => status,
        ({ reason }: AppError) => reason,
      );
    // The knowledge of a node about the others may be a while old.
    const answers = (jobs: Jobs, answer: string) => until(async () => (await answerOf(jobs)) === answer);
    const [one, two] = [inertSigner(ENDED), inertSigner(ENDED)];

    const api = await start('api');
    await api.submit(scripts(['progress 1']));
    const all = await start('all', one.signer);
    const worker = await start('worker', two.signer);
    for (const jobs of [api, all]) {
      await answers(jobs, 'NO_VALID_IDENTITY');
      await jobs.submit(scripts(['progress 1'], { operation: 'verify' }));
    }
    two.renew(AHEAD);
    for (const jobs of [api, all]) await answers(jobs, 'queued');
    await worker.stop(0);
    for (const jobs of [api, all]) await answers(jobs, 'NO_VALID_IDENTITY');
    one.renew(AHEAD);
    await all.submit(scripts(['progress 1']));
  });
});
