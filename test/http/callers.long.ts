import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configSchema } from '#config/config-schema.ts';
import { type JobListResponse, jobListResponse } from '#contract/job-list.ts';
import { startedJobs, until } from '../support/jobs/test-jobs.ts';
import { errorOf, serve } from '../support/servers/serve.ts';
import { type JobServer, type JobServerOptions, serveJobs, sharedJobServer } from './serve-jobs.ts';

const NEWSROOM = 'newsroom-token';
const NEWSROOM_NEXT = 'newsroom-token-of-next-month';
const ARCHIVE = 'archive-token';
const ADMIN = 'admin-token';
const UNNAMED = 'unnamed-token';
const OTHER_UNNAMED = 'other-unnamed-token';

const { auth } = configSchema.parse({
  auth: {
    tokens: [
      { name: 'newsroom', token: NEWSROOM },
      { name: 'newsroom', token: NEWSROOM_NEXT },
      { name: 'archive', token: ARCHIVE },
      { name: 'operations', token: ADMIN, admin: true },
      UNNAMED,
      OTHER_UNNAMED,
    ],
  },
});

const WITH_TOKENS: JobServerOptions = { config: (config) => ({ ...config, auth }) };
const sharedServer = sharedJobServer(WITH_TOKENS);

/** Sends a request as the holder of a token. */
const ask = (server: JobServer, token: string, path: string, method = 'GET'): Promise<Response> =>
  fetch(server.base + path, { method, headers: { authorization: `Bearer ${token}` } });

async function submit(server: JobServer, token: string, script = 'progress 1', key?: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, ...(key !== undefined && { 'idempotency-key': key }) };
  const reply = await server.post('/v2/c2pa/video', [script], { headers });
  assert.equal(reply.status, 200);
  return ((await reply.json()) as { job_id: string }).job_id;
}

async function listed(server: JobServer, token: string, query = ''): Promise<JobListResponse> {
  return jobListResponse.parse(await (await ask(server, token, `/v2/jobs${query}`)).json());
}

const idsOf = ({ jobs }: JobListResponse): string[] => jobs.map((job) => job.job_id);

describe('callers', () => {
  test('find, follow and cancel their own jobs, and those of others are not there', async () => {
    const server = await sharedServer();
    const id = await submit(server, NEWSROOM, 'sleep for-ever');
    for (const token of [ARCHIVE, UNNAMED]) {
      for (const [method, path] of [
        ['GET', `/v2/jobs/${id}`],
        ['GET', `/v2/jobs/${id}/events`],
        ['DELETE', `/v2/jobs/${id}`],
      ] as const) {
        const error = await errorOf(await ask(server, token, path, method));
        assert.deepEqual([error.status, error.code], [404, 'JOB_NOT_FOUND'], `${method} ${path}`);
      }
    }
    const job = (await (await ask(server, NEWSROOM, `/v2/jobs/${id}`)).json()) as { caller: string; timing: object };
    assert.deepEqual([job.caller, 'finished_at' in job.timing], ['newsroom', false]);
    const events = await ask(server, NEWSROOM, `/v2/jobs/${id}/events`);
    assert.equal(events.status, 200);
    await events.body?.cancel();
    assert.equal((await ask(server, NEWSROOM, `/v2/jobs/${id}`, 'DELETE')).status, 202);
  });

  test('list their own jobs, page by page; an admin lists those of all', async (t) => {
    const server = await serveJobs(t, WITH_TOKENS);
    const newsroom = [await submit(server, NEWSROOM), await submit(server, NEWSROOM)].reverse();
    const archive = [await submit(server, ARCHIVE)];
    const third = await submit(server, NEWSROOM);
    assert.deepEqual(idsOf(await listed(server, NEWSROOM)), [third, ...newsroom]);
    assert.deepEqual(idsOf(await listed(server, ARCHIVE)), archive);
    assert.deepEqual(idsOf(await listed(server, UNNAMED)), []);
    assert.deepEqual(idsOf(await listed(server, ADMIN)), [third, ...archive, ...newsroom]);
    const page = await listed(server, NEWSROOM, '?limit=2');
    assert.deepEqual(idsOf(page), [third, newsroom[0]]);
    assert.deepEqual(idsOf(await listed(server, NEWSROOM, `?limit=2&cursor=${page.next_cursor}`)), [newsroom[1]]);
    // A place in one caller's list shows nothing to another.
    assert.deepEqual(idsOf(await listed(server, ARCHIVE, `?cursor=${page.next_cursor}`)), []);
  });

  test('are what an admin filters a list by; it shows nobody else the jobs of another', async (t) => {
    const server = await serveJobs(t, WITH_TOKENS);
    const newsroom = await submit(server, NEWSROOM);
    const archive = await submit(server, ARCHIVE);
    assert.deepEqual(idsOf(await listed(server, ADMIN, '?caller=newsroom')), [newsroom]);
    assert.deepEqual(idsOf(await listed(server, ARCHIVE, '?caller=archive')), [archive]);
    assert.deepEqual(idsOf(await listed(server, ARCHIVE, '?caller=newsroom')), []);
    assert.equal((await listed(server, ADMIN)).jobs[0]?.caller, 'archive');
  });

  test('keep their jobs when their token changes; an admin controls those of all', async () => {
    const server = await sharedServer();
    const id = await submit(server, NEWSROOM, 'sleep for-ever');
    assert.equal((await ask(server, NEWSROOM_NEXT, `/v2/jobs/${id}`)).status, 200);
    assert.equal((await ask(server, ADMIN, `/v2/jobs/${id}`)).status, 200);
    assert.equal((await ask(server, ADMIN, `/v2/jobs/${id}`, 'DELETE')).status, 202);
  });

  test('without names are one each', async () => {
    const server = await sharedServer();
    const id = await submit(server, UNNAMED);
    assert.equal((await ask(server, UNNAMED, `/v2/jobs/${id}`)).status, 200);
    assert.equal((await ask(server, OTHER_UNNAMED, `/v2/jobs/${id}`)).status, 404);
  });

  test('mean jobs of their own by the same idempotency key', async () => {
    const server = await sharedServer();
    const ids = [await submit(server, NEWSROOM, 'progress 1', 'k'), await submit(server, ARCHIVE, 'progress 2', 'k')];
    assert.notEqual(ids[0], ids[1]);
    assert.equal(await submit(server, NEWSROOM_NEXT, 'progress 1', 'k'), ids[0]);
    assert.equal(await submit(server, ARCHIVE, 'progress 2', 'k'), ids[1]);
    const headers = { authorization: `Bearer ${ARCHIVE}`, 'idempotency-key': 'k' };
    const error = await errorOf(await server.post('/v2/c2pa/video', ['progress 1'], { headers }));
    assert.equal(error.status, 409);
    assert.doesNotMatch(error.message, new RegExp(ids[0] ?? ''));
  });

  test('are named in logs and, to admins, in metrics; their tokens are in neither', async (t) => {
    const server = await serveJobs(t, WITH_TOKENS);
    await submit(server, NEWSROOM);
    // Logged once the report of the job was read, which may be after callers see its end.
    await until(() => server.logged.some((line) => line.includes('job ended')));
    const lines = server.logged.map((line) => JSON.parse(line));
    for (const message of ['job accepted', 'job ended', 'request']) {
      assert.equal(lines.find((line) => line.msg === message)?.caller, 'newsroom', message);
    }
    const metrics = async (token: string) => (await ask(server, token, '/metrics')).text();
    assert.match(await metrics(ADMIN), /caller_jobs_submitted_total\{caller="\w+",operation="c2pa-video"\} 1/);
    assert.doesNotMatch(await metrics(ARCHIVE), /caller="/);
    assert.doesNotMatch(server.logged.join('\n') + (await metrics(ADMIN)), /-token/);
  });
});

describe('jobs of before there were callers', () => {
  test('are there for an admin and in an open service, and for nobody else', async (t) => {
    const open = await serveJobs(t);
    const id = await open.submit('progress 1');
    await open.ended(id);
    assert.equal((await open.jobs.find(id))?.caller, undefined);
    await open.jobs.stop(0);
    const jobs = await startedJobs(t, { config: open.config });
    assert.equal(await jobs.find(id, { caller: 'newsroom' }), null);
    assert.equal(await jobs.find(id, { caller: '' }), null);
    assert.equal((await jobs.find(id))?.status, 'succeeded');
  });
});

test('the configuration is shown to admins alone, and holds no token', async () => {
  const server = await sharedServer();
  const shown = await ask(server, ADMIN, '/v2/configuration');
  assert.equal(shown.status, 200);
  assert.doesNotMatch(await shown.text(), /-token|[0-9a-f]{64}/);
  const refused = await errorOf(await ask(server, NEWSROOM, '/v2/configuration'));
  assert.deepEqual([refused.status, refused.code], [404, 'NOT_FOUND']);
});

test('health and documents ask for no token, and know no caller', async () => {
  await using server = await serve({ SERVICE__AUTH__TOKENS: 'hush' });
  for (const path of ['/v2/health', '/v2/health/ready', '/openapi.json']) {
    assert.equal((await fetch(server.base + path)).status, 200);
  }
});
