import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { jobResultResponse } from '#contract/job.ts';
import { jobCallback } from '#contract/job-callback.ts';
import { type JobListResponse, jobListResponse } from '#contract/job-list.ts';
import { DeniedNetworks } from '#inputs/guarded-request.ts';
import { guardedPost } from '#jobs/callback-sender.ts';
import { operations } from '#operations/registry.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { startReceiver } from '../support/servers/callback-receiver.ts';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';
import { type JobServer, serveJobs, sharedJobServer } from './serve-jobs.ts';

async function list({ base }: JobServer, query = ''): Promise<JobListResponse> {
  return jobListResponse.parse(await (await fetch(`${base}/v2/jobs${query}`)).json());
}

const sharedServer = sharedJobServer({
  config: (config) => ({ ...config, callbacks: { secret: 'a secret of the tests' } }),
  jobs: { post: guardedPost(new DeniedNetworks([])), callbackLimits: { pollIntervalMs: 20 } },
});

async function submit(server: JobServer, path: string, scripts: readonly string[], body: object): Promise<string> {
  const reply = await server.post(path, scripts, { body });
  assert.equal(reply.status, 200, await reply.clone().text());
  return ((await reply.json()) as { job_id: string }).job_id;
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
    const running = await server.submit('sleep for-ever');
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

  test('is filtered by operation, reference, label and caller, page by page', async () => {
    const server = await sharedServer();
    const jobs = [
      await submit(server, '/v2/verify', ['progress 1'], { client_reference: 'a&b=c' }),
      await submit(server, '/v2/verify', ['progress 1'], { labels: { team: 'a=b c' } }),
      await submit(server, '/v2/c2pa/video', ['progress 1'], { labels: { team: 'x' } }),
    ] as const;
    const found = async (query: Record<string, string>) =>
      (await list(server, `?${new URLSearchParams(query)}`)).jobs.map((job) => job.job_id);
    assert.deepEqual(await found({ operation: 'verify' }), [jobs[1], jobs[0]]);
    assert.deepEqual(await found({ client_reference: 'a&b=c' }), [jobs[0]]);
    assert.deepEqual(await found({ label: 'team=a=b c' }), [jobs[1]]);
    assert.deepEqual(await found({ label: 'team=x', operation: 'verify' }), []);
    assert.deepEqual(await found({ caller: 'nobody' }), []);
    const { next_cursor: cursor } = await list(server, '?operation=verify&limit=1');
    assert.deepEqual(await found({ operation: 'verify', cursor: cursor ?? '' }), [jobs[0]]);
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

const RECOGNISABLE = { client_reference: 'order-4711 ä', labels: { project: 'evening-news', desk: '' } };

describe('client_reference and labels', () => {
  test('stand in the look-up, the list, the synchronous answer and the callback', async (t) => {
    const receiver = await startReceiver(t);
    const server = await sharedServer();
    const body = { ...RECOGNISABLE, callback_url: receiver.url };
    const reply = await server.post('/v2/sync/c2pa/video', ['progress 1', 'fail /x'], { body });
    const answer = jobResultResponse.parse(await reply.json());
    await receiver.came(1);
    const callback = jobCallback.parse(JSON.parse(receiver.received[0]?.body ?? ''));
    const [listed] = (await list(server)).jobs;
    for (const job of [answer, callback, listed, await server.lookUp(answer.job_id)]) {
      assert.deepEqual(
        { client_reference: job?.client_reference, labels: job?.labels, operation: job?.operation },
        { ...RECOGNISABLE, operation: 'c2pa-video' },
      );
      assert.deepEqual([job?.input_count, job?.input_names], [2, ['progress 1', 'x']]);
    }
    assert.deepEqual(
      answer.results.map((entry) => entry.input_name),
      ['progress 1', 'x'],
    );
  });

  test('are part of what an Idempotency-Key stands for', async () => {
    const server = await sharedServer();
    const headers = { 'idempotency-key': 'k' };
    const send = (body: object) => server.post('/v2/c2pa/video', ['progress 1'], { body, headers });
    assert.equal((await send(RECOGNISABLE)).status, 200);
    assert.equal((await send(RECOGNISABLE)).headers.get('idempotent-replayed'), 'true');
    assert.equal((await send({ ...RECOGNISABLE, labels: {} })).status, 409);
  });
});

describe('a request of any operation', () => {
  let server: TestServer;

  before(async () => {
    server = await serve();
  });

  after(() => server.app.close());

  for (const { name, path } of operations) {
    test(`is told what is wrong with its labels: ${name}`, async () => {
      for (const form of ['/v2', '/v2/sync']) {
        const error = await errorOf(
          await server.post(form + path, { ...goodBody, params: {}, labels: { 'a b': '1' } }),
        );
        assert.deepEqual([error.status, error.code], [400, 'VALIDATION_FAILED']);
      }
    });
  }

  for (const [what, more, field] of [
    ['a reference that is empty', { client_reference: '' }, 'client_reference'],
    ['a reference that is too long', { client_reference: 'x'.repeat(257) }, 'client_reference'],
    ['a reference with a line break', { client_reference: 'a\nb' }, 'client_reference'],
    ['a reference with half a character', { client_reference: 'a\ud800' }, 'client_reference'],
    ['a reference that is a number', { client_reference: 4711 }, 'client_reference'],
    ['labels that are a list', { labels: ['a'] }, 'labels'],
    ['labels that are a text', { labels: 'a=b' }, 'labels'],
    ['17 labels', { labels: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`l${i}`, ''])) }, 'labels'],
    ['a label without a name', { labels: { '': 'x' } }, 'labels.'],
    ['a label whose name holds "="', { labels: { 'a=b': 'x' } }, 'labels.a=b'],
    ['a label whose name is too long', { labels: { ['n'.repeat(64)]: 'x' } }, `labels.${'n'.repeat(64)}`],
    ['a label that is a number', { labels: { a: 1 } }, 'labels.a'],
    ['a label that is null', { labels: { a: null } }, 'labels.a'],
    ['a label that is too long', { labels: { a: 'x'.repeat(257) } }, 'labels.a'],
    ['a label of too many characters', { labels: { a: '🎬'.repeat(257) } }, 'labels.a'],
    ['a label with a NUL', { labels: { a: '\0' } }, 'labels.a'],
  ] as const) {
    test(`is refused with ${what}`, async () => {
      const error = await errorOf(await server.post('/v2/c2pa/video', { ...goodBody, ...more }));
      assert.deepEqual([error.status, error.code, error.details?.field], [400, 'VALIDATION_FAILED', field]);
    });
  }

  test('is refused with a label that is named __proto__, which JavaScript would lose', async () => {
    const body = JSON.stringify(goodBody).replace(/}$/, ',"labels":{"__proto__":"x"}}');
    const error = await errorOf(await server.post('/v2/c2pa/video', body));
    assert.deepEqual([error.status, error.details?.field], [400, 'labels.__proto__']);
  });

  test('is taken with null for both, and with the longest of both', async () => {
    const labels = Object.fromEntries(
      Array.from({ length: 16 }, (_, i) => [`${i}${'n'.repeat(60)}`, '🎬'.repeat(256)]),
    );
    for (const more of [
      { client_reference: null, labels: null },
      { client_reference: '🎬'.repeat(256), labels },
    ]) {
      assert.equal((await server.post('/v2/c2pa/video', { ...goodBody, ...more })).status, 200);
    }
  });
});
