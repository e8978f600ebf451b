import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { jobResponse, jobResultResponse } from '#contract/job.ts';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';

let server: TestServer;

before(async () => {
  server = await serve();
});

after(() => server.app.close());

describe('the asynchronous form', () => {
  for (const operation of ['video', 'audio'] as const) {
    test(`submits ${operation} and answers with the job`, async () => {
      const inputs = [{ type: 'local_file_path', path: operation === 'video' ? '/media/a.mov' : '/media/a.flac' }];
      const params = { parent: null, assertions: [{ label: 'com.example.a', data: { __proto__x: [1, null, 'ä'] } }] };
      const reply = await server.post(`/v2/c2pa/${operation}`, { inputs, output: null, params });
      assert.equal(reply.status, 200);
      assert.match(reply.headers.get('content-type') ?? '', /^application\/json/);
      const job = jobResponse.parse(await reply.json());
      assert.equal(job.status, 'queued');
      const { operation: name, request, sync } = server.jobs.submitted.at(-1) ?? assert.fail('nothing was submitted');
      assert.deepEqual(
        { name, request, sync },
        { name: `c2pa-${operation}`, request: { inputs, output: null, params }, sync: false },
      );
      const found = await fetch(`${server.base}/v2/jobs/${job.job_id}`);
      assert.equal(found.status, 200);
      assert.deepEqual(jobResultResponse.parse(await found.json()).results, []);
    });
  }

  test('keeps a key named __proto__ in an assertion: any JSON value is one', async () => {
    const body =
      '{"inputs":[{"type":"local_file_path","path":"/m/a.mp4"}],"params":{"assertions":[{"label":"com.example.a","data":{"__proto__":{"x":1}}}]}}';
    assert.equal((await server.post('/v2/c2pa/video', body)).status, 200);
    assert.equal(
      JSON.stringify(server.jobs.submitted.at(-1)?.request.params),
      '{"assertions":[{"label":"com.example.a","data":{"__proto__":{"x":1}}}]}',
    );
  });
});

describe('the synchronous form', () => {
  const SUCCEEDED = { input_index: 0, status: 'succeeded', output_path: '/out/interview_c2pa.mp4' } as const;
  const FAILED = {
    input_index: 0,
    status: 'failed',
    error: 'no',
    error_code: 'PROCESSING_FAILED',
    error_details: { reason: 'SOURCE_EMPTY' },
  } as const;

  for (const [status, entry] of [
    ['succeeded', SUCCEEDED],
    ['failed', FAILED],
  ] as const) {
    test(`answers 200 when its job has ${status}`, async () => {
      const waitedFor = server.jobs.nextWaitedFor();
      const answer = server.post('/v2/sync/c2pa/video', goodBody);
      server.jobs.end(await waitedFor, [entry]);
      const reply = await answer;
      assert.equal(reply.status, 200);
      const result = jobResultResponse.parse(await reply.json());
      assert.deepEqual([result.status, result.results], [status, [entry]]);
      assert.equal(server.jobs.submitted.at(-1)?.sync, true);
    });
  }

  test('passes results on as they are kept, as the look-up and the cancelling do: to read thousands would hold up others', async () => {
    const waitedFor = server.jobs.nextWaitedFor();
    const answer = server.post('/v2/sync/c2pa/video', goodBody);
    const id = await waitedFor;
    const kept = '[ {"input_index":0,"status":"cancelled"} ]';
    server.jobs.end(id, [], kept);
    const found = `${server.base}/v2/jobs/${id}`;
    for (const reply of [await answer, await fetch(found), await fetch(found, { method: 'DELETE' })]) {
      assert.match(reply.headers.get('content-type') ?? '', /^application\/json/);
      const text = await reply.text();
      assert.ok(text.includes(`"results":${kept},`), text);
      assert.equal(jobResultResponse.parse(JSON.parse(text)).job_id, id);
    }
  });

  test('answers 408 with the place of the job, which runs on', async () => {
    await using impatient = await serve({ SERVICE__SERVER__SYNC_TIMEOUT_MS: '20' });
    const reply = await impatient.post('/v2/sync/c2pa/video', goodBody);
    const location = reply.headers.get('location') ?? '';
    const error = await errorOf(reply);
    assert.deepEqual([error.status, error.code], [408, 'REQUEST_TIMEOUT']);
    assert.match(location, /^\/v2\/jobs\/./);
    assert.ok(error.message.includes(location.slice('/v2/jobs/'.length)));
    assert.equal((await fetch(impatient.base + location)).status, 200);
  });

  test('frees the wait of a client that hangs up', async () => {
    const controller = new AbortController();
    const waitedFor = server.jobs.nextWaitedFor();
    const answer = fetch(`${server.base}/v2/sync/c2pa/video`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(goodBody),
      signal: controller.signal,
    });
    const id = await waitedFor;
    controller.abort();
    await assert.rejects(answer);
    await server.jobs.nobodyWaits();
    assert.deepEqual(server.jobs.abandoned, [id]);
    assert.equal((await server.jobs.find(id))?.status, 'queued');
    assert.doesNotMatch(server.logged.join('\n'), /"level":"error"/);
  });

  test('answers 503 with the place of the job when the service stops, and keeps no connection open', async () => {
    const stopping = await serve();
    const waitedFor = stopping.jobs.nextWaitedFor();
    const answer = stopping.post('/v2/sync/c2pa/video', goodBody);
    const id = await waitedFor;
    await stopping.app.close();
    const reply = await answer;
    assert.equal(reply.headers.get('location'), `/v2/jobs/${id}`);
    assert.equal(reply.headers.get('connection'), 'close');
    const error = await errorOf(reply);
    assert.deepEqual([error.status, error.code], [503, 'SERVICE_OVERLOADED']);
    await assert.rejects(fetch(`${stopping.base}/v2/health`));
  });
});

// Each waits for the time that open requests get: they wait together.
describe('a client that sends no more', { concurrency: true }, () => {
  for (const [what, begun] of [
    ['anything', ''],
    ['the rest of its head', 'GET /v2/hea'],
    [
      'the rest of its body',
      'POST /v2/c2pa/video HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{',
    ],
  ] as const) {
    test(`does not hold up the service's stop: ${what}`, async () => {
      const stopping = await serve();
      const { hostname, port } = new URL(stopping.base);
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      socket.write(begun);
      await once(stopping.app.server, 'connection');
      await Promise.all([stopping.app.close(), once(socket.resume(), 'close')]);
    });
  }
});

describe('a client that hangs up in the middle of its request', () => {
  test('is no failure of the service', async () => {
    server.logged.length = 0;
    const { hostname, port } = new URL(server.base);
    const socket = connect(Number(port), hostname);
    socket.write(
      'POST /v2/c2pa/video HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{',
    );
    await once(server.app.server, 'request');
    socket.destroy();
    while (!server.logged.some((line) => line.includes('hung up'))) await setImmediate();
    assert.doesNotMatch(server.logged.join('\n'), /"level":"error"/);
  });
});

describe('a client that hangs up while its request is checked', () => {
  test('gets no job, which it would not hear of', async () => {
    server.logged.length = 0;
    const before = server.jobs.submitted.length;
    const inputs = Array.from({ length: 10_000 }, (_, index) => ({
      type: 'local_file_path',
      path: `/media/${index}.mp4`,
    }));
    const body = JSON.stringify({ inputs });
    const { hostname, port } = new URL(server.base);
    const socket = connect(Number(port), hostname);
    socket.write(
      `POST /v2/sync/c2pa/video HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    socket.end(body);
    while (!server.logged.some((line) => /hung up|job accepted/.test(line))) await setImmediate();
    assert.equal(server.jobs.submitted.length, before);
  });
});

describe('health and the reserved routes', () => {
  test('is healthy with an empty body', async () => {
    const reply = await fetch(`${server.base}/v2/health`);
    assert.deepEqual([reply.status, await reply.text()], [200, '']);
  });

  test('answers 503 with an empty body while the store cannot be reached', async () => {
    server.jobs.isHealthy = false;
    const reply = await fetch(`${server.base}/v2/health`);
    server.jobs.isHealthy = true;
    assert.deepEqual([reply.status, await reply.text()], [503, '']);
  });

  for (const [method, path, type] of [
    ['POST', '/v2/watermark', 'application/json'],
    ['POST', '/v2/watermark', 'image/png'],
    ['GET', '/v2/watermark/some-id', ''],
  ] as const) {
    test(`answers 501 in plain text to ${method} ${path} ${type}`, async () => {
      const body = method === 'POST' ? { body: 'anything', headers: { 'content-type': type } } : {};
      const reply = await fetch(server.base + path, { method, ...body });
      assert.equal(reply.status, 501);
      assert.match(reply.headers.get('content-type') ?? '', /^text\/plain/);
      assert.equal(await reply.text(), 'Coming soon');
    });
  }
});

describe('what is logged of a request', () => {
  test('is one line without query, body or headers, with the job', async () => {
    server.logged.length = 0;
    await server.post('/v2/c2pa/video?token=hush1', goodBody, { 'x-secret': 'hush2' });
    await fetch(`${server.base}/nowhere?token=hush1`);
    const log = server.logged.join('\n');
    assert.doesNotMatch(log, /hush|interview/);
    assert.match(log, /"job_id":"/);
    assert.match(log, /"path":"\/v2\/c2pa\/video","status":200/);
    assert.match(log, /"path":"\/nowhere","status":404/);
  });

  test('names the place of what was refused as the answer does', async () => {
    server.logged.length = 0;
    await server.post('/v2/c2pa/video', { inputs: [...goodBody.inputs, { type: 'local_file_path' }] });
    assert.match(server.logged.join('\n'), /"field":"inputs\[1\]\.path","input_index":1/);
  });
});
