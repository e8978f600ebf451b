import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type JobResponse, jobResultResponse } from '#contract/job.ts';
import { startedJobs } from '../support/jobs/test-jobs.ts';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type JobServer, serveJobs, sharedJobServer } from './serve-jobs.ts';

const VIDEO = '/v2/c2pa/video';

const sharedServer = sharedJobServer();

function post({ post: send }: JobServer, key: string, scripts: readonly string[], path = VIDEO): Promise<Response> {
  return send(path, scripts, { headers: { 'idempotency-key': key } });
}

async function accepted(reply: Response): Promise<JobResponse & { replayed: boolean }> {
  assert.equal(reply.status, 200);
  const replayed = reply.headers.get('idempotent-replayed') === 'true';
  return { ...((await reply.json()) as JobResponse), replayed };
}

describe('a submission with an Idempotency-Key', () => {
  test('is one job, however often it is sent', async () => {
    const folder = temporaryFolder();
    const server = await sharedServer();
    const script = `append ${join(folder, 'done')}`;
    const first = await accepted(await post(server, 'often', [script]));
    assert.deepEqual([first.status, first.replayed], ['queued', false]);
    await server.ended(first.job_id);
    const again = await accepted(await post(server, 'often', [script]));
    assert.deepEqual(again, { job_id: first.job_id, status: 'succeeded', replayed: true });
    assert.equal((await readFile(join(folder, 'done'), 'utf8')).split('\n').length, 2);
  });

  test('is one job where it is sent many times at once', async (t) => {
    const server = await serveJobs(t);
    const replies = await Promise.all(Array.from({ length: 20 }, () => post(server, 'race', ['progress 1'])));
    const jobs = await Promise.all(replies.map(accepted));
    assert.equal(new Set(jobs.map((job) => job.job_id)).size, 1);
    assert.equal(jobs.filter((job) => !job.replayed).length, 1);
    const { jobs: listed } = (await (await fetch(`${server.base}/v2/jobs`)).json()) as { jobs: unknown[] };
    assert.equal(listed.length, 1);
    assert.equal((await server.jobs.readiness()).queue.waiting, 0);
  });

  test('is answered 409 IDEMPOTENCY_CONFLICT where another request is sent with the key', async () => {
    const server = await sharedServer();
    await accepted(await post(server, 'conflict', ['progress 1']));
    for (const [scripts, path] of [
      [['progress 2'], VIDEO],
      [['progress 1', 'progress 1'], VIDEO],
      [['progress 1'], '/v2/c2pa/audio'],
      [['progress 2'], '/v2/sync/c2pa/video'],
    ] as const) {
      const error = await errorOf(await post(server, 'conflict', scripts, path));
      assert.deepEqual([error.status, error.code], [409, 'IDEMPOTENCY_CONFLICT']);
    }
  });

  test('is waited for on the synchronous route, also where it was first sent to the other', async () => {
    const server = await sharedServer();
    const { job_id: id } = await accepted(await post(server, 'waits', ['sleep 50']));
    for (let time = 0; time < 2; time += 1) {
      const reply = await post(server, 'waits', ['sleep 50'], '/v2/sync/c2pa/video');
      assert.equal(reply.headers.get('idempotent-replayed'), 'true');
      const job = jobResultResponse.parse(await reply.json());
      assert.deepEqual([job.job_id, job.status], [id, 'succeeded']);
    }
  });

  test('is known after a restart', async (t) => {
    const server = await serveJobs(t);
    const { job_id: id } = await accepted(await post(server, 'k', ['progress 1']));
    await server.ended(id);
    await server.jobs.stop(0);
    const restarted = await startedJobs(t, { config: server.config });
    await assert.rejects(restarted.recall({ key: 'k', digest: 'of another request' }), {
      reason: 'IDEMPOTENCY_KEY_REUSED',
    });
    assert.equal(await restarted.recall({ key: 'other', digest: '' }), null);
  });

  test('is known although the queue is full by now', async (t) => {
    const server = await serveJobs(t, { worker: { queue_capacity: 1 }, jobs: { maxRunningInputs: 1 } });
    const { job_id: id } = await accepted(await post(server, 'k', ['sleep for-ever']));
    let status = 200;
    for (let more = 0; more < 8 && status === 200; more += 1) {
      status = (await server.post(VIDEO, ['sleep for-ever'])).status;
    }
    assert.equal(status, 503);
    assert.equal((await accepted(await post(server, 'k', ['sleep for-ever']))).job_id, id);
  });

  test('is refused and forgotten where it is no good', async () => {
    const server = await sharedServer();
    assert.equal((await post(server, 'refused', ['clip.webm'])).status, 400);
    await accepted(await post(server, 'refused', ['progress 1']));
  });

  test('keeps no file of another submission from being done', async () => {
    const folder = temporaryFolder();
    const server = await sharedServer();
    const [a, b] = ['a', 'b'].map((name) => join(folder, name));
    const ids = await Promise.all(
      [a, b].map(
        async (file, index) => (await accepted(await post(server, `key-${index}`, [`append ${file}`]))).job_id,
      ),
    );
    await Promise.all(ids.map(server.ended));
    assert.ok(existsSync(a ?? '') && existsSync(b ?? ''));
  });
});

describe('an Idempotency-Key', () => {
  let server: TestServer;

  before(async () => {
    server = await serve();
  });

  after(() => server.app.close());

  for (const [what, key, status] of [
    ['empty', '', 400],
    ['of 255 characters', 'k'.repeat(255), 200],
    ['of 256 characters', 'k'.repeat(256), 400],
    ['with a space', 'a b', 400],
    ['beyond ASCII', 'k\u00e4', 400],
    ['with every printable character', '!"#$%&\'()*+,-./0:;<=>?@A[\\]^_`a{|}~', 200],
  ] as const) {
    test(`is answered ${status} where it is ${what}`, async () => {
      assert.equal((await server.post(VIDEO, goodBody, { 'idempotency-key': key })).status, status);
    });
  }

  test('is answered 400 where there are two', async () => {
    const headers = new Headers([
      ['content-type', 'application/json'],
      ['idempotency-key', 'a'],
      ['idempotency-key', 'b'],
    ]);
    const request = { method: 'POST', headers, body: JSON.stringify(goodBody) };
    const error = await errorOf(await fetch(server.base + VIDEO, request));
    assert.deepEqual([error.status, error.code], [400, 'VALIDATION_FAILED']);
  });
});
