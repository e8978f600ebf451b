import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { jobResponse, jobResultResponse } from '#contract/job.ts';
import { itemAt } from '#errors/assert.ts';
import { inertSigner } from '../support/jobs/inert-signer.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { errorOf } from '../support/servers/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveJobs, sharedJobServer } from './serve-jobs.ts';

const sharedServer = sharedJobServer();
const serverOfShortQueue = sharedJobServer({ worker: { queue_capacity: 2 } });

describe('the routes over the real jobs', () => {
  test('answer at once and show the job until it has ended', async () => {
    const { base, post } = await sharedServer();
    const seenRunning = join(temporaryFolder(), 'seen-running');
    const accepted = await post('/v2/c2pa/video', [`wait-for ${seenRunning}`]);
    const { job_id: id, status } = jobResponse.parse(await accepted.json());
    assert.equal(status, 'queued');
    for (;;) {
      const job = jobResultResponse.parse(await (await fetch(`${base}/v2/jobs/${id}`)).json());
      assert.equal(job.results.length, job.status === 'succeeded' ? 1 : 0);
      assert.equal(job.progress === undefined, job.status === 'succeeded');
      if (job.status === 'succeeded') break;
      // Nothing but a look at the running job lets it end.
      if (job.status === 'running') writeFileSync(seenRunning, '');
    }
  });

  test('have how a job ended logged', async () => {
    const { logged, submit } = await sharedServer();
    const id = await submit('progress 1', 'fail /x');
    const ofEnd = (line: string) => line.includes('job ended') && line.includes(id);
    await until(() => logged.some(ofEnd));
    const { job_id, operation, status, inputs } = JSON.parse(logged.find(ofEnd) ?? '');
    assert.deepEqual([job_id, operation, status, inputs], [id, 'c2pa-video', 'failed', 2]);
  });

  test('wait for a job of which one input fails, and answer 200', async () => {
    const { post } = await sharedServer();
    const reply = await post('/v2/sync/c2pa/audio', ['sleep 1', 'fail /somewhere']);
    assert.equal(reply.status, 200);
    const { status, results, timing } = jobResultResponse.parse(await reply.json());
    assert.equal(status, 'failed');
    assert.deepEqual(
      results.map((result) => [result.status, result.error_code, result.error_details?.reason]),
      [
        ['succeeded', undefined, undefined],
        ['failed', 'PROCESSING_FAILED', 'SOURCE_NOT_FOUND'],
      ],
    );
    assert.ok(timing.started_at !== undefined && timing.finished_at !== undefined);
  });

  test('answer 503 with Retry-After to what signs once the identity has ended, until it is renewed', async (t) => {
    const { signer, renew } = inertSigner(new Date(Date.now() - 1));
    const { post, jobs } = await serveJobs(t, { jobs: { signer } });
    for (const path of ['/v2/c2pa/video', '/v2/sync/c2pa/audio']) {
      const reply = await post(path, ['progress 1']);
      const { status, code, message } = await errorOf(reply);
      assert.deepEqual(
        [status, code, Number(reply.headers.get('retry-after')) > 0],
        [503, 'SERVICE_UNAVAILABLE', true],
      );
      assert(!message.includes(itemAt(signer.identities, 0).file));
    }
    for (const path of ['/v2/verify', '/v2/package']) {
      const type = path === '/v2/package' ? 'local_folder_path' : 'local_file_path';
      assert.equal((await post(path, [], { body: { inputs: [{ type, path: '/progress 1' }] } })).status, 200);
    }
    renew(new Date('2100-01-01'));
    assert.equal((await post('/v2/c2pa/video', ['progress 1'])).status, 200);
    assert.equal((await jobs.readiness()).identity?.not_after, '2100-01-01T00:00:00.000Z');
  });

  test('answer 503 with Retry-After where the queue is full', async () => {
    const { post } = await serverOfShortQueue();
    let reply = await post('/v2/c2pa/video', ['sleep for-ever', 'sleep for-ever']);
    for (let more = 0; more < 8 && reply.status === 200; more += 1) {
      reply = await post('/v2/c2pa/video', ['sleep for-ever', 'sleep for-ever']);
    }
    assert.notEqual(reply.headers.get('retry-after'), null);
    const { status, code } = await errorOf(reply);
    assert.deepEqual([status, code], [503, 'SERVICE_OVERLOADED']);
  });

  test('answer 400 to a request with more inputs than the queue takes', async () => {
    const { post } = await serverOfShortQueue();
    const { status, code, details } = await errorOf(await post('/v2/c2pa/video', ['sleep 1', 'sleep 2', 'sleep 3']));
    assert.deepEqual([status, code, details?.field], [400, 'VALIDATION_FAILED', 'inputs']);
  });

  test('are unhealthy once the jobs have stopped, and refuse new ones with 503', async (t) => {
    const { base, post, jobs } = await serveJobs(t);
    assert.equal((await fetch(`${base}/v2/health`)).status, 200);
    await jobs.stop(0);
    assert.equal((await fetch(`${base}/v2/health`)).status, 503);
    assert.equal((await errorOf(await post('/v2/c2pa/video', ['sleep 1']))).status, 503);
  });

  test('answer a waiting client when the server closes before the jobs stop', async (t) => {
    const { post, app } = await serveJobs(t);
    const arrived = once(app.server, 'request');
    const answer = post('/v2/sync/c2pa/video', ['sleep for-ever']);
    await arrived;
    await app.close();
    assert.equal((await errorOf(await answer)).status, 503);
  });
});

const BATCH = 10_000;

describe('a batch of ten thousand inputs', () => {
  test('holds up neither a synchronous request of one file, nor an asynchronous one, nor a look-up', async (t) => {
    const server = await serveJobs(t, { worker: { default_max_files_parallel: 2 } });
    const batch = await server.submit(...Array.from({ length: BATCH }, () => 'sleep 10'));
    for (let time = 0; time < 3; time += 1) {
      const reply = await server.post('/v2/sync/c2pa/video', ['progress 1']);
      assert.equal(jobResultResponse.parse(await reply.json()).status, 'succeeded');
      const single = await server.submit('progress 1');
      assert.equal((await server.ended(single)).status, 'succeeded');
    }
    const { status, progress } = await server.lookUp(batch);
    assert.equal(status, 'running');
    assert.ok((progress?.inputs_done ?? BATCH) < BATCH / 2, `${progress?.inputs_done} inputs of the batch went first`);
    await fetch(`${server.base}/v2/jobs/${batch}`, { method: 'DELETE' });
    const { results } = await server.ended(batch);
    assert.equal(results.length, BATCH);
    assert.ok(results.every((entry, index) => entry.input_index === index));
  });

  test('holds up no other where many wait for theirs at once', async (t) => {
    const server = await serveJobs(t);
    const batch = await server.submit(...Array.from({ length: BATCH }, () => 'sleep 5'));
    const replies = await Promise.all(
      Array.from({ length: 100 }, () => server.post('/v2/sync/c2pa/video', ['progress 1'])),
    );
    for (const reply of replies) assert.equal(jobResultResponse.parse(await reply.json()).status, 'succeeded');
    assert.equal((await server.lookUp(batch)).status, 'running');
  });
});
