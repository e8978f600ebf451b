import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { jobResponse } from '#contract/job.ts';
import { answerConnectionError } from '#http/hooks/error-replies.ts';
import { jsonProblem } from '#http/hooks/json-problem.ts';
import { ResponseBufferLimit } from '#http/hooks/responses.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { serve as serveHttp } from '../support/servers/http-server.ts';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';

const LARGE = { maxNesting: 1000, maxValues: 1_000_000, maxNames: 1_000_000 };

/** Any value whose numbers are small. */
const anything = fc.jsonValue().map((value) => {
  return JSON.parse(JSON.stringify(value, (_key, inside) => (typeof inside === 'number' ? 1 : inside)));
});

/** The values in a parsed body, itself included. */
function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((count, inside) => count + countValues(inside), 1);
}

/** The different names of all objects in a parsed body. */
function namesIn(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value !== 'object' || value === null) return found;
  for (const [name, inside] of Object.entries(value)) {
    if (!Array.isArray(value)) found.add(name);
    namesIn(inside, found);
  }
  return found;
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe('a text that is looked at before it is parsed', () => {
  test('is refused where it holds more values than it may, and never where it holds fewer', async () => {
    await fc.assert(
      fc.asyncProperty(anything, fc.nat(20), async (value, maxValues) => {
        const problem = await jsonProblem(JSON.stringify(value), { ...LARGE, maxValues });
        const count = countValues(value);
        if (count > maxValues) assert.notEqual(problem, null);
        // An empty list counts as if something were in it.
        if (count * 2 <= maxValues) assert.equal(problem, null);
      }),
    );
  });

  test('is refused where it is nested deeper than it may be, and nowhere else', async () => {
    await fc.assert(
      fc.asyncProperty(anything, fc.nat(5), async (value, maxNesting) => {
        const problem = await jsonProblem(JSON.stringify(value, null, 1), { ...LARGE, maxNesting });
        assert.equal(problem !== null, depthOf(value) > maxNesting);
      }),
    );
  });

  test('is refused where it uses more different names than it may, and nowhere else', async () => {
    await fc.assert(
      fc.asyncProperty(anything, fc.nat(5), async (value, maxNames) => {
        const problem = await jsonProblem(JSON.stringify(value, null, 1), { ...LARGE, maxNames });
        assert.equal(problem !== null, namesIn(value).size > maxNames);
      }),
    );
  });

  test('is refused where an object has a name twice, however it is written', async () => {
    const twice = [
      '{"a":1,"a":1}',
      '{"a":{"b":0},"c":[],"a":2}',
      '[{"a":1,"\\u0061":2}]',
      '{"a":0,"b":{"c":0,"d":0,"c":0}}',
    ];
    for (const text of twice) assert.notEqual(await jsonProblem(text, LARGE), null, text);
    const once = ['{"a":{"a":1},"b":{"a":1}}', '[{"a":1},{"a":1}]', '{"a":"a:","b":["a"],"\\u0063":0}', '"a":1,"a":1'];
    for (const text of once) assert.equal(await jsonProblem(text, LARGE), null, text);
  });

  test('is looked at in slices, between which other work goes on', async () => {
    let turns = 0;
    const next = () => {
      turns += 1;
      if (turns < 1000) setImmediate(next);
    };
    next();
    for (const text of [`"${'x'.repeat(4e6)}"`, `[${'1,'.repeat(2e6)}1]`]) {
      turns = 0;
      assert.equal(await jsonProblem(text, { ...LARGE, maxValues: 1e7 }), null);
      assert.ok(turns > 3, `${turns} turns`);
    }
    turns = 1000;
  });

  test('is refused where a whole number in it would become another one, and nowhere else', async () => {
    const number = fc.oneof(
      fc.bigInt(-(2n ** 70n), 2n ** 70n).map(String),
      fc.maxSafeInteger().map(String),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.string(), number), { minLength: 1 }), async (entries) => {
        const text = `[${entries.map(([string, digits]) => `${JSON.stringify(`${string}${digits}`)},${digits}`).join()}]`;
        const kept = entries.every(
          ([, digits]) => !/^-?\d+$/.test(digits) || BigInt(digits) === BigInt(Number(digits)),
        );
        assert.equal((await jsonProblem(text, LARGE)) === null, kept);
      }),
    );
  });

  for (const text of ['1e400', '[-1.5E+400]', '{"a":9e999}']) {
    test(`is refused where a number has no end: ${text}`, async () =>
      assert.notEqual(await jsonProblem(text, LARGE), null));
  }

  test('is left to the parser where it is no JSON, whatever it is', async () => {
    for (const text of ['', '1-2', '--', '"', '"\\', ']]]', '{]', '1.2.3', `${'0'.repeat(1000)}1`]) {
      assert.equal(await jsonProblem(text, LARGE), null, text);
    }
    await fc.assert(fc.asyncProperty(fc.string(), async (text) => void (await jsonProblem(text, LARGE))));
  });
});

/** More than what the system keeps of an answer that nobody reads. */
const ANSWER_BYTES = 20 * 1024 * 1024;
const ENTRY_BYTES = 2048;
/** The number of them that the limit admits. */
const ANSWERS_AT_ONCE = 3;

let server: TestServer;
let large: string;
let small: string;

before(async () => {
  server = await serve();
  [large, small] = [await endedJob(ANSWER_BYTES / ENTRY_BYTES), await endedJob(1)];
});
after(() => server.app.close());

/** The address of a job that has ended with so many results. */
async function endedJob(count: number): Promise<string> {
  const { job_id: jobId } = jobResponse.parse(await (await server.post('/v2/c2pa/video', goodBody)).json());
  const output_path = '/'.padEnd(ENTRY_BYTES, 'x');
  server.jobs.end(
    jobId,
    Array.from({ length: count }, (_, input_index) => ({ input_index, status: 'succeeded', output_path })),
  );
  return `/v2/jobs/${jobId}`;
}

/** Asks for something and reads nothing of the answer. */
function askAndNotRead(path: string): Socket {
  const { hostname, port } = new URL(server.base);
  const socket = connect(Number(port), hostname).pause();
  socket.on('error', () => undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  return socket;
}

async function statusOf(path: string): Promise<number> {
  const reply = await fetch(server.base + path);
  await reply.arrayBuffer();
  return reply.status;
}

test('large answers that nobody reads take bounded memory, and keep no small one back', async () => {
  const sockets = Array.from({ length: ANSWERS_AT_ONCE + 1 }, () => askAndNotRead(large));
  // The answers that are not read are not logged, but the one for which there was no room.
  await until(() => server.logged.some((line) => line.includes('"status":503')));
  const refused = await fetch(server.base + large);
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
  const error = await errorOf(refused);
  assert.deepEqual([error.status, error.code], [503, 'SERVICE_OVERLOADED']);
  assert.equal(await statusOf(small), 200);
  for (const socket of sockets) socket.destroy();
  await until(async () => (await statusOf(large)) === 200);
});

test('large answers to clients that have hung up take no memory', async (t) => {
  const { promise: asked, resolve } = Promise.withResolvers<ServerResponse>();
  const { port } = await serveHttp(t, (_request, response) => resolve(response));
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const response = await asked;
  socket.destroy();
  await once(response, 'close');
  const limit = new ResponseBufferLimit();
  for (let count = 0; count < 100; count += 1) assert(limit.tryReserve(response, 1024 * 1024));
});

test('connections are bounded: more are closed as they come, which is logged once', async () => {
  await using server = await serve();
  const { hostname, port } = new URL(server.base);
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  assert.equal(server.app.server.maxConnections, 10_000);
  server.app.server.maxConnections = 1;

  const first = await open();
  // Answered, so that the server has seen it.
  first.write('GET /v2/health HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(first, 'data');
  for (let count = 0; count < 3; count += 1) {
    const refused = await open();
    refused.resume();
    await once(refused, 'close');
  }
  first.write('GET /v2/health HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(first, 'data');
  first.destroy();
  assert.equal(server.logged.filter((line) => line.includes('connections are refused')).length, 1);
});

test('a request that did not arrive whole in time is answered 408 with the error body, and its connection ends', async (t) => {
  const server = createServer((socket) =>
    answerConnectionError(Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket),
  );
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let answer = '';
  for await (const chunk of socket.setEncoding('utf8')) answer += chunk;
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 408 [\s\S]*\r\nConnection: close/);
  assert.equal(JSON.parse(body).error.code, 'REQUEST_TIMEOUT');
});
