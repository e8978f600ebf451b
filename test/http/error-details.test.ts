import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';

const VIDEO = '/v2/c2pa/video';
const file = (path: string) => ({ type: 'local_file_path', path });
const JSON_TYPE = { 'content-type': 'application/json' };
const folder = { type: 'local_folder_path', path: '/media' };

let server: TestServer;

before(async () => {
  server = await serve({ SERVICE__SERVER__MAX_UPLOAD_BYTES: '500000' });
});

after(() => server.app.close());

/** Submits a body, and returns where its problems lie, after holding the first against the error itself. */
async function problemsOf(body: object, path = VIDEO): Promise<(readonly [string, string | undefined])[]> {
  const { message, details } = await errorOf(await server.post(path, body));
  const { problems = [], ...first } = details;
  assert.deepEqual(problems[0], { message, ...first });
  return problems.map(({ reason, field }) => [reason, field]);
}

describe('a refused request', () => {
  test('is told all problems of its schema, the first one as the error itself', async () => {
    const body = {
      inputs: [file('/a.mp4'), { type: 'local_file_path' }, { ...file('/c.mp4'), size: 1, name: 'c' }],
      params: { assertions: [{ data: 1 }] },
      labels: 7,
    };
    assert.deepEqual(await problemsOf(body), [
      ['REQUEST_INVALID', 'inputs[1].path'],
      ['REQUEST_INVALID', 'inputs[2].size'],
      ['REQUEST_INVALID', 'inputs[2].name'],
      ['REQUEST_INVALID', 'labels'],
      ['REQUEST_INVALID', 'params.assertions[0].label'],
    ]);
  });

  test('is told of entries far behind in a long list as well', async () => {
    const inputs = Array.from({ length: 1200 }, (_, index) => (index % 550 === 1 ? file('') : file(`/${index}.mp4`)));
    assert.deepEqual(
      (await problemsOf({ inputs })).map(([, field]) => field),
      [1, 551, 1101].map((index) => `inputs[${index}].path`),
    );
  });

  test('is told of 20 problems at most', async () => {
    for (const inputs of [Array.from({ length: 1200 }, () => file('')), Array.from({ length: 30 }, () => folder)]) {
      assert.equal((await problemsOf({ inputs })).length, 20);
    }
    assert.equal((await problemsOf(Object.fromEntries(Array.from({ length: 30 }, (_, at) => [at, 0])))).length, 20);
  });

  test('is told of all inputs that are refused', async () => {
    assert.deepEqual(await problemsOf({ inputs: [folder, file('/a.mp4'), file('/b.mp3'), folder] }), [
      ['INPUT_IS_FOLDER', 'inputs[0].type'],
      ['INPUT_EXTENSION_REFUSED', 'inputs[2]'],
      ['INPUT_IS_FOLDER', 'inputs[3].type'],
    ]);
    assert.deepEqual(await problemsOf({ inputs: [file('/a'), file('/b')] }, '/v2/package'), [
      ['INPUT_IS_FILE', 'inputs[0].type'],
      ['INPUT_IS_FILE', 'inputs[1].type'],
    ]);
    const s3 = { type: 'remote_file_url', url: 's3://bucket/a.mp4' };
    assert.deepEqual(await problemsOf({ inputs: [s3, s3] }, '/v2/verify'), [
      ['S3_INPUTS_OFF', 'inputs[0].url'],
      ['S3_INPUTS_OFF', 'inputs[1].url'],
    ]);
  });

  test('is told of all inputs that would write what another writes', async () => {
    const inputs = ['/1/a.mp4', '/2/a.mp4', '/1/b.mp4', '/3/a.mp4'].map(file);
    assert.deepEqual(await problemsOf({ inputs }), [
      ['OUTPUT_TAKEN', 'inputs[1]'],
      ['OUTPUT_TAKEN', 'inputs[3]'],
    ]);
  });

  test('is told what is wrong with its query and its headers in the same way', async () => {
    const list = await errorOf(await fetch(`${server.base}/v2/jobs?limit=0&colour=red`));
    assert.deepEqual(
      list.details.problems?.map(({ field }) => field),
      ['limit', 'colour'],
    );
    const { details } = await errorOf(await server.post(VIDEO, goodBody, { 'idempotency-key': 'a b' }));
    assert.equal(details.problems?.[0]?.reason, 'IDEMPOTENCY_KEY_MALFORMED');
  });
});

describe('every error', () => {
  for (const [status, reason, path, init] of [
    [403, 'ORIGIN_FORBIDDEN', '/v2/jobs', { headers: { origin: 'https://example.com' } }],
    [404, 'ROUTE_UNKNOWN', '/nowhere', {}],
    [404, 'JOB_UNKNOWN', '/v2/jobs/none', {}],
    [405, 'METHOD_UNKNOWN', VIDEO, { method: 'PUT' }],
    [413, 'BODY_TOO_LARGE', VIDEO, { method: 'POST', body: ' '.repeat(500_001), headers: JSON_TYPE }],
    [415, 'BODY_TYPE_UNSUPPORTED', VIDEO, { method: 'POST', body: 'text' }],
  ] as const satisfies readonly (readonly [number, string, string, RequestInit])[]) {
    test(`carries its reason: ${status} ${reason}`, async () => {
      const error = await errorOf(await fetch(server.base + path, init));
      assert.deepEqual([error.status, error.details], [status, { reason }]);
    });
  }

  test('carries its reason: 401 TOKEN_MISSING', async () => {
    await using guarded = await serve({ SERVICE__AUTH__TOKENS: 'a-token-of-the-tests' });
    const { status, details } = await errorOf(await fetch(`${guarded.base}/v2/jobs`));
    assert.deepEqual([status, details], [401, { reason: 'TOKEN_MISSING' }]);
  });

  for (const [status, refusal] of [
    [409, new AppError('IDEMPOTENCY_KEY_REUSED', { jobId: 'a' })],
    [503, new AppError('QUEUE_FULL', { waiting: 1, asked: 1, limit: 1 })],
    [503, new AppError('DATABASE_UNREACHABLE', { address: 'db', problem: 'nothing listens there' })],
    [500, new Error('a bug')],
  ] as const) {
    const reason = refusal instanceof AppError ? refusal.reason : 'REQUEST_MET_BUG';
    test(`carries its reason: ${status} ${reason}`, async () => {
      server.jobs.refusal = refusal;
      const reply = await server.post(VIDEO, goodBody);
      server.jobs.refusal = null;
      const error = await errorOf(reply);
      assert.deepEqual([error.status, error.details], [status, { reason }]);
    });
  }
});

describe('a job store that cannot be used just now', () => {
  const lost = new AppError('DATABASE_UNREACHABLE', { address: 'db', problem: 'nothing listens there' });

  test('is a 503 SERVICE_UNAVAILABLE with Retry-After at a submission and a look-up', async (t) => {
    server.jobs.refusal = lost;
    const submitted = await server.post(VIDEO, goodBody);
    server.jobs.refusal = null;
    t.mock.method(server.jobs, 'find', () => Promise.reject(lost));
    for (const reply of [submitted, await fetch(`${server.base}/v2/jobs/some-job`)]) {
      assert.match(reply.headers.get('retry-after') ?? '', /^\d+$/);
      const { status, code } = await errorOf(reply);
      assert.deepEqual([status, code], [503, 'SERVICE_UNAVAILABLE']);
    }
    const lines = server.logged.map((text) => JSON.parse(text)).filter(({ reason }) => reason === lost.reason);
    const [failed, request] = ['request failed', 'request'].map((msg) => lines.find((line) => line.msg === msg));
    assert.deepEqual([failed.level, failed.err.message.includes('nothing listens there')], ['error', true]);
    assert.deepEqual([request.level, request.status, request.request_id], ['info', 503, failed.request_id]);
  });
});

test('an accepted job has its address in Location', async () => {
  const reply = await server.post(VIDEO, goodBody);
  const { job_id: id } = (await reply.json()) as { job_id: string };
  assert.equal(reply.headers.get('location'), `/v2/jobs/${id}`);
});
