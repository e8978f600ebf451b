import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '#errors/app-error.ts';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';

const VIDEO = '/v2/c2pa/video';
let server: TestServer;

before(async () => {
  server = await serve({ SERVICE__SERVER__MAX_UPLOAD_BYTES: '4096' });
});

after(() => server.app.close());

/** Sends bytes as they are and returns everything that comes back until the server closes the connection. */
async function raw(request: string): Promise<string> {
  const { hostname, port } = new URL(server.base);
  const socket = connect(Number(port), hostname);
  socket.end(request);
  let answer = '';
  for await (const chunk of socket.setEncoding('utf8')) answer += chunk;
  return answer;
}

describe('a body that is not a request', () => {
  for (const [what, body] of [
    ['an empty body', ''],
    ['white space', '  \n'],
    ['half of one', '{"inputs": ['],
    ['a syntax error', '{"inputs": [],}'],
    ['something else than JSON', 'hello'],
    ['a number', '5'],
    ['null', 'null'],
    ['a list', '[]'],
  ] as const) {
    test(`answers 400 VALIDATION_FAILED to ${what}`, async () => {
      const error = await errorOf(await server.post(VIDEO, body));
      assert.deepEqual([error.status, error.code, error.details.field], [400, 'VALIDATION_FAILED', undefined]);
    });
  }

  test('answers 400 VALIDATION_FAILED to a type without a body', async () => {
    const answer = await raw(
      `POST ${VIDEO} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n`,
    );
    assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*VALIDATION_FAILED/);
  });

  test('answers 400 VALIDATION_FAILED to no body at all', async () => {
    const error = await errorOf(await fetch(server.base + VIDEO, { method: 'POST' }));
    assert.deepEqual([error.status, error.code], [400, 'VALIDATION_FAILED']);
  });

  test('refuses bytes that are no UTF-8 instead of replacing them', async () => {
    const body = Buffer.concat([
      Buffer.from('{"inputs":[{"type":"local_file_path","path":"/m/'),
      Buffer.of(0xff),
      Buffer.from('.mp4"}]}'),
    ]);
    const headers = { 'content-type': 'application/json' };
    const error = await errorOf(await fetch(server.base + VIDEO, { method: 'POST', headers, body }));
    assert.deepEqual([error.status, error.code], [400, 'VALIDATION_FAILED']);
  });

  test('refuses paths that no file system takes, before they are looked for', async () => {
    const deep = `/${'a/'.repeat(2048)}`;
    const local = (path: string) => ({ inputs: [{ type: 'local_file_path', path }] });
    await using roomy = await serve();
    for (const [field, body] of [
      ['inputs[0].path', local(deep)],
      ['inputs[0].path', local(`/media/${'ä'.repeat(128)}`)],
      ['inputs[0].path', local(`/${'a/'.repeat(128)}clip.mp4`)],
      ['inputs[0].url', { inputs: [{ type: 'remote_file_url', url: `s3://bucket/${'a/'.repeat(128)}clip.mp4` }] }],
      ['output.prefix', { ...goodBody, output: { type: 'local', prefix: deep.slice(1) } }],
      ['output.name', { ...goodBody, output: { type: 'local', name: 'n'.repeat(256) } }],
      [
        'params.parent.source.path',
        { ...goodBody, params: { parent: { type: 'file', source: { type: 'local_file_path', path: deep } } } },
      ],
    ] as const) {
      const text = JSON.stringify(body);
      const error = await errorOf(await roomy.post(VIDEO, text));
      assert.deepEqual([error.status, error.details?.field], [400, field]);
    }
    assert.equal((await server.post(VIDEO, local(`/media/${'ä'.repeat(120)}.mp4`))).status, 200);
  });

  test('takes a byte order mark and brackets inside strings', async () => {
    const body = { ...goodBody, params: { parent: { type: 'reference', reference: `\\"${'['.repeat(1000)}` } } };
    assert.equal((await server.post(VIDEO, `\ufeff${JSON.stringify(body)}`)).status, 200);
  });

  test('refuses nesting without end before anything follows it down', async () => {
    const body = JSON.stringify({ ...goodBody, params: { assertions: [{ label: 'com.example.a', data: 0 }] } });
    const nested = (depth: number): string => body.replace(':0}', `:${'['.repeat(depth)}${']'.repeat(depth)}}`);
    assert.equal((await server.post(VIDEO, nested(90))).status, 200);
    assert.equal((await server.post(VIDEO, nested(1000))).status, 400);
  });

  test('refuses a body of more values than one of its size is allowed, before it is parsed', async () => {
    const data = (count: number): string => Array.from({ length: count }, () => 0).join();
    const body = JSON.stringify({ ...goodBody, params: { assertions: [{ label: 'com.example.a', data: 0 }] } });
    const statuses = [200, 300].map(async (count) => {
      return (await server.post(VIDEO, body.replace(':0}', `:[${data(count)}]}`))).status;
    });
    assert.deepEqual(await Promise.all(statuses), [200, 400]);
  });

  test('refuses a body of more different names than a parser takes in a moment', async () => {
    await using large = await serve();
    const data = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`name-${index}`, 0]));
    const statuses = [99_000, 100_001].map(async (count) => {
      const params = { assertions: [{ label: 'com.example.a', data: data(count) }] };
      return (await large.post(VIDEO, { ...goodBody, params })).status;
    });
    assert.deepEqual(await Promise.all(statuses), [200, 400]);
  });

  for (const [number, status] of [
    ['9007199254740991', 200],
    ['9007199254740993', 400],
    ['-12345678901234567890', 400],
    ['12345678901234567168', 200],
    ['1e400', 400],
    ['-1.5E+400', 400],
    ['1e300', 200],
    ['0.12345678901234567890', 200],
    ['"9007199254740993 and 1e400"', 200],
  ] as const) {
    test(`${status === 200 ? 'takes' : 'refuses'} ${number} in an assertion: what is signed is what was given`, async () => {
      const body = JSON.stringify({ ...goodBody, params: { assertions: [{ label: 'com.example.a', data: 0 }] } });
      const reply = await server.post(VIDEO, body.replace('"data":0', `"data":${number}`));
      assert.equal(reply.status, status);
    });
  }

  test('never repeats a body in its message: it may hold a presigned URL', async () => {
    const error = await errorOf(await server.post(VIDEO, '{"url": "https://host/a?sig=hush" x'));
    assert.doesNotMatch(error.message, /hush/);
  });

  test('answers 413 to a body over the cap, whether its length is announced or not', async () => {
    const announced = await errorOf(await server.post(VIDEO, ' '.repeat(4097)));
    assert.deepEqual([announced.status, announced.code], [413, 'PAYLOAD_TOO_LARGE']);
    const body = new Blob([' '.repeat(8192)]).stream();
    const streamed = await fetch(server.base + VIDEO, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      duplex: 'half',
    } as RequestInit);
    assert.equal((await errorOf(streamed)).status, 413);
  });

  test('lets a client that sends all of a body over the cap before it reads have its 413', async () => {
    const lengthBytes = 9 * 1024 * 1024;
    const { port, hostname } = new URL(server.base);
    const socket = connect(Number(port), hostname);
    socket.write(
      `POST ${VIDEO} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${lengthBytes}\r\n\r\n`,
    );
    const block = Buffer.alloc(64 * 1024, 0x20);
    for (let sent = 0; sent < lengthBytes; sent += block.length) {
      await new Promise<void>((resolve, reject) =>
        socket.write(block, (error) => (error == null ? resolve() : reject(error))),
      );
      await sleep(1);
    }
    const [head] = (await once(socket, 'data')) as [Buffer];
    assert.match(head.toString('latin1'), /^HTTP\/1\.1 413 /);
    socket.destroy();
  });

  test('answers a request that names no host with the error body', async () => {
    const answer = await raw(`GET /v2/jobs/none HTTP/1.1\r\nConnection: close\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 403 [\s\S]*FORBIDDEN_HOST/);
  });

  test('takes a request that expects what is not known here (RFC 9110, section 10.1.1)', async () => {
    const answer = await raw(`GET /v2/jobs/none HTTP/1.1\r\nHost: x\r\nExpect: more\r\nConnection: close\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 404 [\s\S]*JOB_NOT_FOUND/);
  });

  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'nonsense',
  ]) {
    test(`answers 415 to ${type}`, async () => {
      const error = await errorOf(await server.post(VIDEO, JSON.stringify(goodBody), { 'content-type': type }));
      assert.deepEqual([error.status, error.code], [415, 'UNSUPPORTED_MEDIA_TYPE']);
    });
  }

  test('answers 415 to a body that says it is compressed, whatever it is', async () => {
    for (const coding of ['gzip', 'br', 'identity, deflate']) {
      const error = await errorOf(await server.post(VIDEO, goodBody, { 'content-encoding': coding }));
      assert.deepEqual([error.status, error.code], [415, 'UNSUPPORTED_MEDIA_TYPE']);
    }
    assert.equal((await server.post(VIDEO, goodBody, { 'content-encoding': 'identity' })).status, 200);
  });

  test('takes JSON with a charset', async () => {
    const reply = await server.post(VIDEO, goodBody, { 'content-type': 'application/json; charset=utf-8' });
    assert.equal(reply.status, 200);
  });
});

describe('a route that does not exist', () => {
  for (const [method, path] of [
    ['GET', '/v2'],
    ['POST', '/v2/c2pa/pictures'],
    ['GET', '/v2/jobs/x/events/y'],
    ['GET', '/v2/health/'],
    ['GET', '/V2/health'],
    ['PROPFIND', '/nowhere'],
  ]) {
    test(`answers 404 NOT_FOUND to ${method} ${path}`, async () => {
      const error = await errorOf(await fetch(server.base + path, { method: method ?? '' }));
      assert.deepEqual([error.status, error.code], [404, 'NOT_FOUND']);
    });
  }

  for (const [method, path, allow] of [
    ['GET', VIDEO, 'POST'],
    ['PUT', '/v2/sync/c2pa/audio', 'POST'],
    ['OPTIONS', VIDEO, 'POST'],
    ['POST', '/v2/health', 'GET, HEAD'],
    ['PUT', '/v2/jobs/some-job', 'GET, HEAD, DELETE'],
    ['PROPFIND', '/v2/jobs/some-job', 'GET, HEAD, DELETE'],
    ['DELETE', '/v2/jobs', 'GET, HEAD'],
    ['POST', '/v2/jobs/some-job/events', 'GET, HEAD'],
    ['POST', '/metrics', 'GET, HEAD'],
    ['GET', '/v2/watermark', 'POST'],
    ['POST', '/v2/watermark/some-id', 'GET, HEAD'],
    ['POST', '/openapi.json', 'GET, HEAD'],
  ] as const) {
    test(`answers 405 with an Allow header to ${method} ${path}`, async () => {
      const reply = await fetch(server.base + path, { method });
      assert.deepEqual(reply.headers.get('allow')?.split(', ').sort(), allow.split(', ').sort());
      const error = await errorOf(reply);
      assert.deepEqual([error.status, error.code], [405, 'METHOD_NOT_ALLOWED']);
    });
  }

  test('answers before a body is looked at', async () => {
    assert.equal((await server.post('/v2/health', 'no JSON')).status, 405);
    assert.equal((await server.post('/nowhere', 'no JSON', { 'content-type': 'text/plain' })).status, 404);
  });

  test('answers with the error body to a path that cannot be decoded', async () => {
    const error = await errorOf(await fetch(`${server.base}/v2/jobs/%E0%A4%A`));
    assert.deepEqual([error.status, error.code], [400, 'VALIDATION_FAILED']);
  });

  for (const [what, request] of [
    ['what is no HTTP', 'GARBAGE\r\n\r\n'],
    ['headers without end', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
  ] as const)
    test(`answers with the error body to ${what}`, async () => {
      const answer = await raw(request);
      assert.match(answer, /^HTTP\/1\.1 400 /);
      assert.equal(JSON.parse(answer.slice(answer.indexOf('{'))).error.code, 'VALIDATION_FAILED');
    });
});

describe('a job that does not exist', () => {
  for (const id of ['', 'unknown', 'a'.repeat(5000), '%00', '..%2F..%2Fetc', 'ä', "'%20OR%201=1"]) {
    test(`answers 404 JOB_NOT_FOUND to ${id.slice(0, 20)}`, async () => {
      const error = await errorOf(await fetch(`${server.base}/v2/jobs/${id}`));
      assert.deepEqual([error.status, error.code], [404, 'JOB_NOT_FOUND']);
      assert.ok(error.message.length < 300, 'an identifier is not repeated in all its length');
    });
  }
});

describe('a failure inside the service', () => {
  test('answers 500 INTERNAL_ERROR without internals, and logs them under the request id', async () => {
    server.jobs.refusal = new Error('the store at /srv/secret-place is gone');
    const reply = await server.post(VIDEO, goodBody);
    server.jobs.refusal = null;
    const requestId = reply.headers.get('x-request-id') ?? '';
    assert.match(requestId, /^[0-9a-f-]{36}$/);
    const error = await errorOf(reply);
    assert.deepEqual([error.status, error.code], [500, 'INTERNAL_ERROR']);
    assert.doesNotMatch(error.message, /secret-place/);
    assert.ok(error.message.includes(requestId));
    assert.ok(server.logged.some((line) => line.includes(requestId) && line.includes('secret-place')));
  });

  test('names no host, folder or process of the deployment while its store is out of reach; the log does', async () => {
    const inside = 'db-7.internal:5432/jobs';
    for (const refusal of [
      new AppError('DATABASE_UNREACHABLE', { address: inside, problem: 'connect ECONNREFUSED 10.0.0.7:5432' }),
      new AppError('DATABASE_REFUSES_LOGIN', { address: inside, problem: 'no password for user "attestream"' }),
      new AppError('STORE_IO_FAILED', { file: '/srv/secret-place/jobs.sqlite', problem: 'disk I/O error' }),
    ]) {
      server.logged.length = 0;
      server.jobs.refusal = refusal;
      const reply = await server.post(VIDEO, goodBody);
      server.jobs.refusal = null;
      const requestId = reply.headers.get('x-request-id') ?? '';
      const { message } = await errorOf(reply);
      assert.ok(message.includes(requestId));
      assert.doesNotMatch(message, /internal|10\.0\.0\.7|5432|attestream|secret-place|sqlite/);
      assert.ok(server.logged.some((line) => line.includes(requestId) && /internal|secret-place/.test(line)));
    }
  });

  test('has Retry-After where its cause may pass, and not where it will not', async () => {
    const file = '/data/jobs.sqlite';
    const refusals = [
      new AppError('STORE_DISK_FULL', { file }),
      new AppError('PROGRAM_NOT_STARTED', { program: 'the packager', problem: 'the disk is full' }),
      new AppError('STORE_CORRUPT', { file, problem: 'it is none' }),
    ];
    const answers: unknown[] = [];
    for (const refusal of refusals) {
      server.jobs.refusal = refusal;
      const reply = await server.post(VIDEO, goodBody);
      answers.push([(await errorOf(reply)).code, reply.headers.has('retry-after')]);
    }
    server.jobs.refusal = null;
    assert.deepEqual(answers, [
      ['SERVICE_UNAVAILABLE', true],
      ['INTERNAL_ERROR', true],
      ['INTERNAL_ERROR', false],
    ]);
  });

  test('answers 503 SERVICE_OVERLOADED with Retry-After where the queue is full', async () => {
    server.jobs.refusal = new AppError('QUEUE_FULL', { waiting: 9, asked: 2, limit: 10 });
    const reply = await server.post(VIDEO, goodBody);
    server.jobs.refusal = null;
    assert.match(reply.headers.get('retry-after') ?? '', /^\d+$/);
    const error = await errorOf(reply);
    assert.deepEqual([error.status, error.code], [503, 'SERVICE_OVERLOADED']);
  });
});
