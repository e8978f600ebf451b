import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type JobListResponse, jobListResponse } from '#contract/job-list.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { errorOf, serve, type TestServer } from '../support/servers/serve.ts';
import { type JobServer, serveJobs } from './serve-jobs.ts';

async function list({ base }: JobServer, query = ''): Promise<JobListResponse> {
  return jobListResponse.parse(await (await fetch(`${base}/v2/jobs${query}`)).json());
}

describe('GET /v2/jobs', () => {
  test('is empty at first', async (t) => {
    assert.deepEqual(await list(await serveJobs(t)), { jobs: [], next_cursor: null });
  });

  test('lists the newest first, page by page, also while jobs are submitted', async (t) => {
    const server = await serveJobs(t);
    const ids: string[] = [];
    for (let count = 0; count < 7; count += 1) ids.unshift(await server.submit('progress 1'));
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const page = await list(server, `?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`);
      assert.ok(page.jobs.length <= 3);
      seen.push(...page.jobs.map((job) => job.job_id));
      cursor = page.next_cursor;
      await server.submit('progress 1');
    }
    assert.deepEqual(seen, ids);
  });

  test('has no further page where the last one is just full', async (t) => {
    const server = await serveJobs(t);
    await server.submit('progress 1');
    await server.submit('progress 1');
    assert.equal((await list(server, '?limit=2')).next_cursor, null);
    assert.notEqual((await list(server, '?limit=1')).next_cursor, null);
  });

  test('lists those of one status, without their results', async (t) => {
    const server = await serveJobs(t);
    const succeeded = await server.submit('progress 1');
    const failed = await server.submit('fail /x');
    const running = await server.submit('sleep 60000');
    await Promise.all([server.ended(succeeded), server.ended(failed)]);
    await until(async () => (await server.lookUp(running)).status === 'running');
    for (const [status, id] of Object.entries({ succeeded, failed, running })) {
      const { jobs } = await list(server, `?status=${status}`);
      assert.deepEqual(
        jobs.map((job) => [job.job_id, job.status, 'results' in job, 'progress' in job]),
        [[id, status, false, status === 'running']],
      );
    }
    assert.deepEqual((await list(server, '?status=queued')).jobs, []);
  });

  test('lists 50 unless told otherwise', async (t) => {
    const server = await serveJobs(t);
    await Promise.all(Array.from({ length: 52 }, () => server.submit('progress 1')));
    assert.equal((await list(server)).jobs.length, 50);
    assert.equal((await list(server, '?limit=200')).jobs.length, 52);
  });
});

describe('a list that cannot be asked for', () => {
  let server: TestServer;

  before(async () => {
    server = await serve();
  });

  after(() => server.app.close());

  for (const [query, field] of [
    ['limit=0', 'limit'],
    ['limit=201', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=many', 'limit'],
    ['limit=', 'limit'],
    ['limit=0x10', 'limit'],
    ['limit=1e2', 'limit'],
    ['limit=+5', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['status=cancelled', 'status'],
    ['status=', 'status'],
    ['status=failed&status=queued', 'status'],
    ['cursor=', 'cursor'],
    ['cursor=%00', 'cursor'],
    ['cursor=Li4vLi4', 'cursor'],
    ['cursor=YQ==', 'cursor'],
    [`cursor=${'a'.repeat(300)}`, 'cursor'],
    ['state=queued', 'state'],
    ['operation=sign', 'operation'],
    ['operation=', 'operation'],
    ['client_reference=', 'client_reference'],
    ['client_reference=a%0Ab', 'client_reference'],
    ['label=', 'label'],
    ['label=team', 'label'],
    ['label==x', 'label'],
    ['label=a%20b=x', 'label'],
    ['label=a=1&label=b=2', 'label'],
    ['caller=', 'caller'],
  ]) {
    test(`answers 400 VALIDATION_FAILED to ?${query?.slice(0, 40)}`, async () => {
      const error = await errorOf(await fetch(`${server.base}/v2/jobs?${query}`));
      assert.deepEqual([error.status, error.code, error.details?.field], [400, 'VALIDATION_FAILED', field]);
    });
  }
});
