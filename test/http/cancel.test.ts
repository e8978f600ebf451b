import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { jobResultResponse } from '#contract/job.ts';
import type { InputAttempt } from '#jobs/job.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { isRunning } from '../support/processes.ts';
import { errorOf, goodBody, serve } from '../support/servers/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type JobServer, serveJobs, sharedJobServer } from './serve-jobs.ts';

const sharedServer = sharedJobServer();

async function cancel({ base }: JobServer, id: string) {
  const reply = await fetch(`${base}/v2/jobs/${id}`, { method: 'DELETE' });
  return { status: reply.status, job: jobResultResponse.parse(await reply.json()) };
}

describe('DELETE /v2/jobs/{id}', () => {
  test('cancels what waits at once, and lets what was done stand', async (t) => {
    const server = await serveJobs(t, { jobs: { maxRunningInputs: 1 } });
    const id = await server.submit('progress 1', 'sleep for-ever', 'progress 1', 'progress 1');
    await until(async () => (await server.lookUp(id)).progress?.inputs_done === 1);
    const { status } = await cancel(server, id);
    assert.equal(status, 202);
    const job = await server.ended(id);
    assert.equal(job.status, 'failed');
    assert.deepEqual(
      job.results.map((entry) => [entry.input_index, entry.status]),
      [
        [0, 'succeeded'],
        [1, 'cancelled'],
        [2, 'cancelled'],
        [3, 'cancelled'],
      ],
    );
    assert.equal(job.results[2]?.output_path, undefined);
  });

  test('ends a job at once of which nothing runs, and answers with its end', async (t) => {
    const server = await serveJobs(t, { worker: { max_concurrent_batches: 1 } });
    await server.submit('sleep for-ever');
    const id = await server.submit('progress 1', 'progress 1');
    const { status, job } = await cancel(server, id);
    assert.deepEqual([status, job.status, job.results.length], [202, 'failed', 2]);
  });

  test('answers 200 with the job unchanged where it was cancelled or had ended before', async () => {
    const server = await sharedServer();
    const ended = await server.submit('progress 1');
    const before = await server.ended(ended);
    assert.deepEqual(await cancel(server, ended), { status: 200, job: before });
    const running = await server.submit('sleep for-ever');
    assert.equal((await cancel(server, running)).status, 202);
    assert.equal((await cancel(server, running)).status, 200);
    const cancelled = await server.ended(running);
    assert.deepEqual(await cancel(server, running), { status: 200, job: cancelled });
  });

  const cleared: (InputAttempt | undefined)[] = [];
  const clearingServer = sharedJobServer({ jobs: { clearStagings: async (claim) => void cleared.push(claim) } });

  for (const script of ['sleep for-ever', 'stubborn for-ever', 'block for-ever']) {
    test(`stops an input that runs, also one that does not want to: ${script}`, async () => {
      const folder = temporaryFolder();
      const server = await clearingServer();
      const id = await server.submit(`append ${join(folder, 'began')}; ${script}; append ${join(folder, 'went on')}`);
      await until(() => existsSync(join(folder, 'began')));
      await cancel(server, id);
      const job = await server.ended(id);
      assert.deepEqual(job.results, [{ input_index: 0, input_name: 'went on', status: 'cancelled' }]);
      assert.ok(!existsSync(join(folder, 'went on')));
      assert.ok(cleared.some((claim) => claim?.jobId === id));
    });
  }

  test('ends the programs that the worker of an input had started', async () => {
    const folder = temporaryFolder();
    const server = await sharedServer();
    const pidFile = join(folder, 'pid');
    const id = await server.submit(`spawn ${pidFile}; block for-ever`);
    await until(() => existsSync(pidFile));
    const pid = Number(await readFile(pidFile, 'utf8'));
    assert.ok(isRunning(pid));
    await cancel(server, id);
    await server.ended(id);
    await until(() => !isRunning(pid));
  });

  test('leaves other jobs alone, and the workers go on', async () => {
    const server = await sharedServer();
    const cancelled = await server.submit('sleep for-ever', 'sleep for-ever');
    const other = await server.submit('sleep 50', 'progress 1', 'progress 1');
    await cancel(server, cancelled);
    assert.equal((await server.ended(other)).status, 'succeeded');
    assert.equal((await server.ended(cancelled)).status, 'failed');
  });

  test('ends a synchronous wait with the cancelled job', async (t) => {
    const server = await serveJobs(t);
    const answer = server.post('/v2/sync/c2pa/video', ['sleep for-ever']);
    let id: string | undefined;
    await until(async () => {
      const { jobs } = (await (await fetch(`${server.base}/v2/jobs`)).json()) as { jobs: { job_id: string }[] };
      id = jobs[0]?.job_id;
      return id !== undefined;
    });
    await cancel(server, id ?? '');
    const job = jobResultResponse.parse(await (await answer).json());
    assert.deepEqual([job.job_id, job.status], [id, 'failed']);
  });

  test('makes room in the queue', async (t) => {
    const server = await serveJobs(t, { worker: { queue_capacity: 3, max_concurrent_batches: 1 } });
    const first = await server.submit('sleep for-ever');
    await until(async () => (await server.lookUp(first)).status === 'running');
    const waiting = await server.submit('sleep 1', 'sleep 1', 'sleep 1');
    assert.equal((await server.post('/v2/c2pa/video', ['sleep 1'])).status, 503);
    await cancel(server, waiting);
    assert.equal((await server.post('/v2/c2pa/video', ['sleep 1'])).status, 200);
  });

  test('many at once, while inputs begin and end, leaves no job unfinished', async () => {
    const server = await sharedServer();
    const ids = await Promise.all(
      Array.from({ length: 30 }, () => server.submit('progress 1', 'sleep 3', 'progress 1', 'sleep 5')),
    );
    await Promise.all(ids.map(async (id, index) => sleep(index * 4).then(() => cancel(server, id))));
    for (const id of ids) {
      const job = await server.ended(id);
      assert.equal(job.results.length, 4);
      for (const { status, output_path } of job.results) {
        assert.ok(['succeeded', 'cancelled'].includes(status));
        assert.equal(output_path !== undefined, status === 'succeeded');
      }
    }
    assert.equal((await server.jobs.readiness()).queue.waiting, 0);
  });

  for (const init of [
    { headers: { 'content-type': 'application/json' } },
    { headers: { 'content-type': 'text/plain' }, body: 'now' },
  ]) {
    test(`does not read a body: ${JSON.stringify(init)}`, async () => {
      await using server = await serve();
      const { job_id: id } = (await (await server.post('/v2/c2pa/video', goodBody)).json()) as { job_id: string };
      assert.equal((await fetch(`${server.base}/v2/jobs/${id}`, { method: 'DELETE', ...init })).status, 202);
    });
  }

  test('answers 404 where there is no such job', async () => {
    const { base } = await sharedServer();
    const error = await errorOf(await fetch(`${base}/v2/jobs/nothing`, { method: 'DELETE' }));
    assert.deepEqual([error.status, error.code], [404, 'JOB_NOT_FOUND']);
  });
});
