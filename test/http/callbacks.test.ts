import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { raceAbort } from '#concurrency/race-abort.ts';
import type { Config } from '#config/config.ts';
import { jobCallback } from '#contract/job-callback.ts';
import { DeniedNetworks } from '#inputs/guarded-request.ts';
import { type CallbackLimits, guardedPost, type Post } from '#jobs/callback-sender.ts';
import { Jobs } from '#jobs/jobs.ts';
import { ownAddress } from '../../scripts/own-address.ts';
import { ended, HANG_MS, SCRIPTED_WORKER, type Scope, scripts, shared, until } from '../support/jobs/test-jobs.ts';
import { startReceiver } from '../support/servers/callback-receiver.ts';
import { errorOf, serve, type TestServer } from '../support/servers/serve.ts';
import { type JobServer, serveJobs } from './serve-jobs.ts';

const SECRET = 'a secret of the tests';
const SETTINGS = {
  SERVICE__CALLBACKS__SECRET: SECRET,
  SERVICE__INPUT_RESOLVERS__HTTP__DENY_NETWORKS: '10.0.0.0/8',
};

const withSecret = (config: Config): Config => ({ ...config, callbacks: { secret: SECRET } });

/** A server that tries failed callbacks again at once, and waits for its receivers on the slowest host. */
async function serveWithCallbacks(
  scope: Scope,
  limits: Partial<CallbackLimits> = {},
  denied: readonly string[] = [],
): Promise<JobServer> {
  const post = guardedPost(new DeniedNetworks(denied));
  const callbackLimits = { attemptMs: HANG_MS, firstPauseMs: 20, pollIntervalMs: 20, ...limits };
  return serveJobs(scope, { config: withSecret, jobs: { post, callbackLimits } });
}

const sharedServer = shared((scope) => serveWithCallbacks(scope));

async function submit(server: JobServer, url: string, ...inputs: string[]): Promise<string> {
  const reply = await server.post('/v2/c2pa/video', inputs, { body: { callback_url: url } });
  assert.equal(reply.status, 200);
  return ((await reply.json()) as { job_id: string }).job_id;
}

/** The record of a callback as it is on the disk, once the service has let go of it. */
async function recordOf({ jobs, config }: JobServer, jobId: string): Promise<Record<string, unknown>> {
  await jobs.stop(0);
  const database = new DatabaseSync(join(config.jobs.data_dir, 'jobs.sqlite'));
  const row = database.prepare('select * from callbacks where job_id = ?').get(jobId);
  database.close();
  return row ?? {};
}

describe('a callback', () => {
  for (const [status, inputs] of [
    ['succeeded', ['progress 1', 'progress 2']],
    ['failed', ['progress 1', 'fail /x']],
  ] as const) {
    test(`posts the Job result of a job that ${status}, signed`, async (t) => {
      const receiver = await startReceiver(t);
      const server = await sharedServer();
      const id = await submit(server, `${receiver.url}/signed?for=me`, ...inputs);
      await receiver.came(1);
      const [{ path, headers, body } = assert.fail()] = receiver.received;
      assert.equal(path, '/signed?for=me');
      assert.match(headers['content-type'] ?? '', /^application\/json/);
      const callback = jobCallback.parse(JSON.parse(body));
      assert.equal(callback.status, status);
      assert.deepEqual(callback, await server.lookUp(id));
      const [, time, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-attestream-signature'])) ?? [];
      assert.equal(signature, createHmac('sha256', SECRET).update(`${time}.${body}`).digest('hex'));
      assert.ok(Math.abs(Number(time) - Date.now() / 1000) < 600);
    });
  }

  test('is sent for a job that is cancelled', async (t) => {
    const receiver = await startReceiver(t);
    const server = await sharedServer();
    const id = await submit(server, receiver.url, 'sleep for-ever');
    await fetch(`${server.base}/v2/jobs/${id}`, { method: 'DELETE' });
    await receiver.came(1);
    assert.equal(jobCallback.parse(JSON.parse(receiver.received[0]?.body ?? '')).results[0]?.status, 'cancelled');
  });

  test('is sent again until it is taken, and once then', async (t) => {
    let answers = 0;
    const failing: RequestListener = (_request, response) => {
      answers += 1;
      response.writeHead(answers < 4 ? 500 : 204).end();
    };
    const receiver = await startReceiver(t, failing);
    const server = await serveWithCallbacks(t);
    const id = await submit(server, `${receiver.url}/hook?token=hush`, 'progress 1');
    await until(() => server.logged.some((line) => line.includes('callback delivered')));
    assert.equal(receiver.received.length, 4);
    const record = await recordOf(server, id);
    assert.deepEqual([record['state'], record['attempts'], record['next_attempt_at']], ['delivered', 4, null]);
    assert.equal(record['url'], receiver.url);
    assert.doesNotMatch(server.logged.join('\n'), /hush|token=|\/hook/);
  });

  test('follows no redirect', async (t) => {
    const inside = await startReceiver(t);
    const receiver = await startReceiver(t, (_request, response) => {
      response.writeHead(307, { location: inside.url }).end();
    });
    const server = await sharedServer();
    await submit(server, receiver.url, 'progress 1');
    await receiver.came(3);
    assert.deepEqual(inside.received, []);
  });

  test('is never sent to a denied address, and given up at once', async (t) => {
    const receiver = await startReceiver(t);
    const server = await serveWithCallbacks(t, {}, ['127.0.0.0/8', '::1']);
    const named = receiver.url.replace('127.0.0.1', 'localhost');
    const id = await submit(server, named, 'progress 1');
    await until(() => server.logged.some((line) => line.includes('HTTP_ADDRESS_DENIED')));
    assert.deepEqual(receiver.received, []);
    const record = await recordOf(server, id);
    assert.deepEqual([record['state'], record['attempts']], ['given_up', 1]);
  });

  test('that hangs, or whose answer never ends, holds up no other', async (t) => {
    const silent = await startReceiver(t, () => undefined);
    const endless = await startReceiver(t, (_request, response) => {
      response.writeHead(200);
      const writing = setInterval(() => response.write('x'.repeat(10_000)), 1);
      response.on('close', () => clearInterval(writing));
    });
    const receiver = await startReceiver(t);
    const impatient = await serveWithCallbacks(t, { attemptMs: 500 });
    for (let count = 0; count < 3; count += 1) await submit(impatient, silent.url, 'progress 1');
    const patient = await sharedServer();
    const id = await submit(patient, endless.url, 'progress 1');
    for (const server of [impatient, patient]) await submit(server, receiver.url, 'progress 1');
    const isDelivered = (line: string) => line.includes('callback delivered') && line.includes(id);
    await Promise.all([receiver.came(2), silent.came(6), until(() => patient.logged.some(isDelivered))]);
    assert.equal(endless.received.length, 1);
  });

  test('of which hundreds hang holds up no other', async (t) => {
    const [silent, other] = ['http://silent.example', 'http://other.example'];
    const posted: string[] = [];
    const post: Post = async (url, _message, signal) => {
      posted.push(url);
      return url === silent ? raceAbort(new Promise(() => undefined), signal) : 204;
    };
    const server = await serveJobs(t, { config: withSecret, jobs: { post, callbackLimits: { attemptMs: 3_600_000 } } });
    const hanging = await Promise.all(Array.from({ length: 100 }, () => submit(server, silent, 'progress 1')));
    await Promise.all(hanging.map((id) => ended(server.jobs, id)));
    await until(() => posted.length >= 8);
    await submit(server, other, 'progress 1');
    await until(() => posted.includes(other));
    assert.deepEqual(posted, [...Array<string>(8).fill(silent), other]);
  });

  test('that could not be delivered is delivered after a restart', async (t) => {
    const address = ownAddress();
    const server = await serveWithCallbacks(t, { firstPauseMs: 3_600_000 });
    const id = await submit(server, `http://${address.host}:${address.port}/later`, 'progress 1');
    await until(() => server.logged.some((line) => line.includes('callback failed')));
    await server.jobs.stop(0);
    // As if the pause were over.
    const database = new DatabaseSync(join(server.config.jobs.data_dir, 'jobs.sqlite'));
    database.exec('update callbacks set next_attempt_at = ended_at');
    database.close();
    const receiver = await startReceiver(t, undefined, address);
    const restarted = new Jobs({
      config: server.config,
      workerEntry: SCRIPTED_WORKER,
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      post: guardedPost(new DeniedNetworks([])),
      callbackLimits: { pollIntervalMs: 20 },
    });
    await restarted.start();
    t.after(() => restarted.stop(0));
    await receiver.came(1);
    assert.equal(JSON.parse(receiver.received[0]?.body ?? '').job_id, id);
  });

  test('with too many results goes without them', async (t) => {
    const receiver = await startReceiver(t);
    const server = await sharedServer();
    const many = Array.from({ length: 30_000 }, () => 'sleep for-ever');
    const { job_id: id } = await server.jobs.submit({ ...scripts(many), callbackUrl: receiver.url });
    await server.jobs.cancel(id);
    await receiver.came(1);
    const { results, results_omitted: omitted } = jobCallback.parse(JSON.parse(receiver.received[0]?.body ?? ''));
    assert.deepEqual([results, omitted], [[], true]);
  });
});

describe('a callback_url', () => {
  test('is refused where no secret is set', async () => {
    await using server = await serve();
    const body = { inputs: [{ type: 'local_file_path', path: '/a.mp4' }], callback_url: 'https://example.com' };
    const { status, code, details } = await errorOf(await server.post('/v2/c2pa/video', body));
    assert.deepEqual([status, code, details?.field], [400, 'VALIDATION_FAILED', 'callback_url']);
  });

  let server: TestServer;
  before(async () => {
    server = await serve(SETTINGS);
  });
  after(() => server.app.close());

  for (const [url, expected] of [
    ['https://example.com/hook?a=b', 200],
    ['http://example.com', 200],
    [null, 200],
    ['http://10.1.2.3/hook', 400],
    ['http://0xa010203/hook', 400],
    ['http://169.254.169.254/latest', 400],
    ['http://[fe80::1]/', 400],
    ['http://[::ffff:10.1.2.3]/', 400],
    ['http://11.1.2.3/', 200],
    ['s3://bucket/key', 400],
    ['ftp://example.com', 400],
    ['https://user:pass@example.com', 400],
    ['https://', 400],
    ['not a url', 400],
    ['', 400],
    [5, 400],
  ] as const) {
    test(`is answered ${expected} where it is ${JSON.stringify(url)}`, async () => {
      const body = { inputs: [{ type: 'local_file_path', path: '/a.mp4' }], callback_url: url };
      const reply = await server.post('/v2/c2pa/video', body);
      assert.equal(reply.status, expected);
      if (expected === 400) assert.equal((await errorOf(reply)).details?.field, 'callback_url');
      assert.doesNotMatch(server.logged.join('\n'), /a=b|user:pass/);
    });
  }
});
