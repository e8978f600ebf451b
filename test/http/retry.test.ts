import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { configSchema } from '#config/config-schema.ts';
import { jobResponse } from '#contract/job.ts';
import { DeniedNetworks } from '#inputs/guarded-request.ts';
import { guardedPost } from '#jobs/callback-sender.ts';
import { ended, until } from '../support/jobs/test-jobs.ts';
import { startReceiver } from '../support/servers/callback-receiver.ts';
import { errorOf } from '../support/servers/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type JobServer, serveJobs, sharedJobServer } from './serve-jobs.ts';

function retry({ base }: JobServer, id: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${base}/v2/jobs/${id}/retry`, { method: 'POST', ...init });
}

/** Retries a job, and returns the identifier of the new one. */
async function retried(server: JobServer, id: string, init: RequestInit = {}): Promise<string> {
  const reply = await retry(server, id, init);
  assert.equal(reply.status, 202, await reply.clone().text());
  const job = jobResponse.parse(await reply.json());
  assert.equal(job.status, 'queued');
  assert.equal(reply.headers.get('location'), `/v2/jobs/${job.job_id}`);
  return job.job_id;
}

async function refused(reply: Response): Promise<[number, string]> {
  const { status, code } = await errorOf(reply);
  return [status, code];
}

const sharedServer = sharedJobServer();

/** Returns a job that has ended: its second input failed, the others succeeded. */
async function failedJob(server: JobServer): Promise<string> {
  const id = await server.submit('progress 1', 'fail /x', 'progress 2');
  await server.ended(id);
  return id;
}

describe('POST /v2/jobs/{id}/retry', () => {
  test('runs the failed inputs again as a new job, and nothing else', async () => {
    const server = await sharedServer();
    const log = join(temporaryFolder(), 'log');
    const body = { client_reference: 'order-4711', labels: { project: 'evening-news' } };
    const scripts = [`append ${log}`, `append ${log}; fail /x`, `append ${log}`, `append ${log}; fail /y`];
    const reply = await server.post('/v2/c2pa/video', scripts, { body });
    const first = await server.ended(((await reply.json()) as { job_id: string }).job_id);
    const second = await server.ended(await retried(server, first.job_id));
    const { operation, client_reference, labels, retried_from, input_count, results } = second;
    assert.deepEqual({ client_reference, labels }, body);
    assert.deepEqual([operation, retried_from, input_count], ['c2pa-video', first.job_id, 2]);
    assert.deepEqual(
      results.map((entry) => [entry.input_index, entry.input_name, entry.error_details?.['path']]),
      [
        [0, 'x', '/x'],
        [1, 'y', '/y'],
      ],
    );
    assert.equal((await readFile(log, 'utf8')).trim().split('\n').length, 6);
    assert.equal((await server.lookUp(first.job_id)).retried_from, undefined);
    assert.ok(server.logged.some((line) => JSON.parse(line).retried_from === first.job_id));
  });

  test('can be retried itself', async () => {
    const server = await sharedServer();
    const id = await failedJob(server);
    const second = await retried(server, id);
    await server.ended(second);
    const third = await server.ended(await retried(server, second));
    assert.deepEqual([third.retried_from, third.input_count], [second, 1]);
  });

  test('leaves out what was cancelled, unless it is asked for', async (t) => {
    const server = await serveJobs(t, { worker: { max_concurrent_batches: 1 }, jobs: { maxRunningInputs: 1 } });
    const started = join(temporaryFolder(), 'started');
    const failing = await server.submit('fail /x', `append ${started}; sleep for-ever`, 'progress 1');
    // It holds the only slot from then on.
    await until(() => existsSync(started));
    await until(async () => (await server.lookUp(failing)).progress?.inputs_done === 1);
    const waiting = await server.submit('progress 1');
    for (const id of [waiting, failing]) {
      await fetch(`${server.base}/v2/jobs/${id}`, { method: 'DELETE' });
      await server.ended(id);
    }
    assert.deepEqual(await refused(await retry(server, waiting)), [409, 'JOB_NOT_RETRYABLE']);
    assert.equal((await server.ended(await retried(server, failing))).input_count, 1);
    const headers = { 'content-type': 'application/json' };
    const statuses = JSON.stringify({ statuses: ['cancelled', 'failed'], input_indexes: [0, 2] });
    const both = await retried(server, failing, { headers, body: statuses });
    await server.jobs.cancel(both);
    assert.equal((await server.ended(both)).input_count, 2);
    const again = await retried(server, waiting, { headers, body: '{"statuses":["cancelled"]}' });
    assert.equal((await server.ended(again)).status, 'succeeded');
  });

  test('replaces no output of the jobs that it retries', async () => {
    const server = await sharedServer();
    const id = await server.submit('progress 1', 'fail /x; claim /out/0');
    await server.ended(id);
    // What is retried fails before it reserves anything, so a script that claims at once is submitted in its place.
    const { job_id: claiming } = await server.jobs.submit({
      operation: 'c2pa-video',
      request: { inputs: [{ type: 'local_file_path', path: 'claim /out/0; fail /x' }] },
      sync: false,
      retriedFrom: id,
    });
    const job = await server.ended(claiming);
    assert.equal(job.results[0]?.error_details?.reason, 'OUTPUT_TAKEN');
    const again = await server.ended(await retried(server, claiming));
    assert.equal(again.results[0]?.error_details?.reason, 'OUTPUT_TAKEN', 'nor of those which these retry');
  });

  test('is answered 404 for a job that is not there', async () => {
    const server = await sharedServer();
    for (const id of ['0197f3a2-5d5c-7c3e-9b1a-2f64d1c0a7e5', '..', 'a%00b']) {
      assert.deepEqual((await refused(await retry(server, id)))[0], 404, id);
    }
  });

  test('is answered 409 while the job runs, and where none of its inputs failed', async () => {
    const server = await sharedServer();
    const running = await server.submit('fail /x', 'sleep for-ever');
    const succeeded = await server.submit('progress 1');
    await server.ended(succeeded);
    for (const id of [running, succeeded]) {
      assert.deepEqual(await refused(await retry(server, id)), [409, 'JOB_NOT_RETRYABLE'], id);
    }
    await server.jobs.cancel(running);
  });

  test('is answered 409 with the inputs whose presigned queries were erased', async () => {
    const server = await sharedServer();
    const url = (name: string) => ({
      type: 'remote_file_url',
      url: `https://example.com/${name}.mp4?X-Signature=hush`,
    });
    const inputs = [url('a'), { type: 'local_file_path', path: 'fail /x' }, url('b')];
    const reply = await server.post('/v2/c2pa/video', [], { body: { inputs } });
    const { job_id: id } = (await reply.json()) as { job_id: string };
    await server.ended(id);
    const error = await errorOf(await retry(server, id));
    assert.deepEqual([error.status, error.code], [409, 'JOB_NOT_RETRYABLE']);
    assert.deepEqual(error.details, { input_index: 0, input_indexes: [0, 2], reason: 'QUERY_ERASED' });
    assert.match(error.message, /"a\.mp4", "b\.mp4"/);
    assert.doesNotMatch(error.message, /hush/);
  });

  test('is one job with an Idempotency-Key, also when the first job is gone', async () => {
    const server = await sharedServer();
    const id = await failedJob(server);
    const headers = { 'idempotency-key': 'k' };
    const second = await retried(server, id, { headers });
    await server.ended(second);
    const again = await retry(server, id, { headers });
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [202, 'true']);
    assert.equal(again.headers.get('location'), `/v2/jobs/${second}`);
    assert.deepEqual(await again.json(), { job_id: second, status: 'failed' });
    assert.deepEqual(await refused(await retry(server, second, { headers })), [409, 'IDEMPOTENCY_CONFLICT']);
    assert.notEqual(await retried(server, id, { headers: { 'idempotency-key': 'l' } }), second);
  });

  test('is refused like any submission where the queue is full', async (t) => {
    const server = await serveJobs(t, { worker: { queue_capacity: 2, max_concurrent_batches: 1 } });
    const id = await server.submit('fail /x');
    await server.ended(id);
    let status = 200;
    for (let more = 0; more < 8 && status === 200; more += 1) {
      status = (await server.post('/v2/c2pa/video', ['sleep for-ever'])).status;
    }
    assert.deepEqual(await refused(await retry(server, id)), [503, 'SERVICE_OVERLOADED']);
  });

  test('is checked like any submission: against the configuration as it is now', async (t) => {
    const server = await serveJobs(t);
    const id = await failedJob(server);
    Object.assign(server.config.worker, { max_inputs_per_job: 0 });
    assert.deepEqual(await refused(await retry(server, id)), [400, 'VALIDATION_FAILED']);
  });

  test('takes no body, an empty one, or a callback_url, and refuses anything else', async (t) => {
    const receiver = await startReceiver(t);
    const server = await serveJobs(t, {
      config: (config) => ({ ...config, callbacks: { secret: 'a secret of the tests' } }),
      jobs: { post: guardedPost(new DeniedNetworks([])), callbackLimits: { pollIntervalMs: 20 } },
    });
    const id = await server.submit('fail /x');
    await server.ended(id);
    const headers = { 'content-type': 'application/json' };
    await retried(server, id, { headers });
    await retried(server, id, { headers, body: '{}' });
    const told = await retried(server, id, { headers, body: JSON.stringify({ callback_url: receiver.url }) });
    await receiver.came(1);
    assert.equal(JSON.parse(receiver.received[0]?.body ?? '').job_id, told);
    const choices = [
      '{"reasons": []}',
      '{"reasons": ["SOURCE_LOST"]}',
      '{"statuses": ["succeeded"]}',
      '{"input_indexes": [1]}',
    ];
    for (const body of ['{"output": null}', '[]', '{', '{"callback_url": "ftp://x/"}', ...choices]) {
      assert.deepEqual(await refused(await retry(server, id, { headers, body })), [400, 'VALIDATION_FAILED'], body);
    }
  });
});

describe('callers', () => {
  const TOKENS = { newsroom: 'newsroom-token', archive: 'archive-token', operations: 'admin-token' };
  const { auth } = configSchema.parse({
    auth: {
      tokens: Object.entries(TOKENS).map(([name, token]) => ({ name, token, admin: name === 'operations' })),
    },
  });
  const as = (name: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[name]}` } });

  test('retry their own jobs; an admin retries those of all, which stay with their callers', async (t) => {
    const server = await serveJobs(t, { config: (config) => ({ ...config, auth }) });
    const reply = await server.post('/v2/c2pa/video', ['fail /x'], as('newsroom'));
    const { job_id: id } = (await reply.json()) as { job_id: string };
    await ended(server.jobs, id);
    assert.deepEqual(await refused(await retry(server, id, as('archive'))), [404, 'JOB_NOT_FOUND']);
    assert.equal((await retry(server, id)).status, 401);
    for (const name of ['newsroom', 'operations'] as const) {
      const again = await retried(server, id, as(name));
      const seen = await fetch(`${server.base}/v2/jobs/${again}`, as('newsroom'));
      assert.equal(((await seen.json()) as { caller: string }).caller, 'newsroom');
    }
  });
});
