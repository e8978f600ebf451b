import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { apiErrorResponse } from '#contract/error.ts';
import { goodBody, serve, type TestServer } from '../support/servers/serve.ts';

let open: TestServer;
let guarded: TestServer;

before(async () => {
  open = await serve({ SERVICE__SERVER__ALLOWED_HOSTS: 'Media.Example.com, bücher.example' });
  guarded = await serve({ SERVICE__AUTH__TOKENS: 'a-token' });
});

after(() => Promise.all([open.app.close(), guarded.app.close()]));

/** Sends a request line and header lines as they are; resolves with the status and the error code of the answer. */
async function ask(server: TestServer, requestLine: string, ...headers: string[]): Promise<[number, string | null]> {
  const { hostname, port } = new URL(server.base);
  const socket = connect(Number(port), hostname);
  socket.end(`${requestLine}\r\n${[...headers, 'Connection: close'].join('\r\n')}\r\n\r\n`, 'latin1');
  let answer = '';
  for await (const chunk of socket.setEncoding('latin1')) answer += chunk;
  const [head = '', body = ''] = answer.split(/\r\n\r\n/);
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]);
  return [status, status < 400 ? null : apiErrorResponse.parse(JSON.parse(body)).error.code];
}

const LIST = 'GET /v2/jobs HTTP/1.1';
const FORBIDDEN = [403, 'FORBIDDEN_HOST'];
const SERVED = [200, null];

describe('an open service', () => {
  for (const host of [
    '127.0.0.1',
    '192.0.2.7:8080',
    '[::1]',
    '[2001:DB8::1]:8080',
    '[fe80::1%25eth0]:8080',
    'localhost',
    'LocalHost:8080',
    'localhost.',
    'attest_stream-1:80',
    'media.example.com',
    'MEDIA.EXAMPLE.COM.:8443',
    'xn--bcher-kva.example',
  ]) {
    test(`serves the host ${host}`, async () => {
      assert.deepEqual(await ask(open, LIST, `Host: ${host}`), SERVED);
    });
  }

  for (const host of [
    'evil.example',
    'evil.example:8080',
    'evil.example.',
    'EVIL.EXAMPLE',
    'sub.media.example.com',
    'media.example.com.evil.example',
    'media.example.com..',
    '127.0.0.1.evil.example',
    '127.1',
    '127.0.0.1.',
    '256.1.1.1',
    '::1',
    '[::1]evil.example',
    '[evil.example]',
    '[::1',
    'localhost:8080:80',
    'localhost:x',
    'user@localhost',
    'localhost, evil.example',
    'localhost evil',
    'localhost%2eevil',
    'b\u00fccher.example',
    '.',
    '',
  ]) {
    test(`refuses the host "${host}"`, async () => {
      assert.deepEqual(await ask(open, LIST, `Host: ${host}`), FORBIDDEN);
    });
  }

  test('refuses a request that names no host, or several', async () => {
    assert.deepEqual(await ask(open, LIST, 'Accept: */*'), FORBIDDEN);
    assert.deepEqual(await ask(open, 'GET /v2/jobs HTTP/1.0', 'Accept: */*'), FORBIDDEN);
    assert.deepEqual(await ask(open, 'GET /v2/jobs HTTP/1.0', 'Host: localhost'), SERVED);
    assert.deepEqual(await ask(open, LIST, 'Host: localhost', 'Host: evil.example'), FORBIDDEN);
    assert.deepEqual(await ask(open, LIST, 'Host: evil.example', 'Host: localhost'), FORBIDDEN);
  });

  test('goes by the whole request target where that names a host', async () => {
    const target = (address: string) => `GET ${address}/v2/jobs HTTP/1.1`;
    assert.deepEqual(await ask(open, target('http://evil.example'), 'Host: localhost'), FORBIDDEN);
    assert.deepEqual(await ask(open, target('http://localhost'), 'Host: evil.example'), FORBIDDEN);
    assert.deepEqual(await ask(open, target('http://evil.example'), 'Host: evil.example'), FORBIDDEN);
    assert.deepEqual(await ask(open, target('http://localhost:80'), 'Host: localhost'), SERVED);
  });

  test('trusts no header that a proxy might have set', async () => {
    const forwarded = ['X-Forwarded-Host: localhost', 'Forwarded: host=localhost', 'X-Host: localhost'];
    assert.deepEqual(await ask(open, LIST, 'Host: evil.example', ...forwarded), FORBIDDEN);
    assert.deepEqual(await ask(open, LIST, 'Host: localhost', 'X-Forwarded-Host: evil.example'), SERVED);
  });

  for (const [host, origin] of [
    ['localhost:8080', 'http://localhost:8080'],
    ['LOCALHOST', 'http://localhost'],
    ['127.0.0.1:80', 'http://127.0.0.1'],
    ['media.example.com', 'https://media.example.com'],
    ['[::1]:8080', 'http://[::1]:8080'],
  ] as const) {
    test(`serves a page of ${origin} under ${host}`, async () => {
      assert.deepEqual(await ask(open, LIST, `Host: ${host}`, `Origin: ${origin}`), SERVED);
    });
  }

  for (const origin of [
    'null',
    '',
    'http://evil.example',
    'http://localhost',
    'http://localhost:8081',
    'http://localhost:8080.evil.example',
    'http://evil.example@localhost:8080',
    'http://localhost:8080/path',
    'file://',
    'chrome-extension://abcdef',
    'localhost:8080',
    'http://localhost:8080, http://localhost:8080',
  ]) {
    test(`refuses a page of "${origin}"`, async () => {
      assert.deepEqual(await ask(open, LIST, 'Host: localhost:8080', `Origin: ${origin}`), FORBIDDEN);
    });
  }

  test('refuses every route to a page whose name was rebound to this address, before a body is read', async () => {
    const length = 'Content-Length: 1000000';
    for (const line of [
      'POST /v2/c2pa/video HTTP/1.1',
      'POST /v2/sync/package HTTP/1.1',
      'DELETE /v2/jobs/some-job HTTP/1.1',
      'GET /v2/jobs/some-job/events HTTP/1.1',
      'GET /metrics HTTP/1.1',
      'GET /openapi.json HTTP/1.1',
      'GET /docs HTTP/1.1',
      'GET /nowhere HTTP/1.1',
      'POST /v2/watermark HTTP/1.1',
    ]) {
      assert.deepEqual(
        await ask(open, line, 'Host: evil.example', length, 'Content-Type: application/json'),
        FORBIDDEN,
      );
    }
    assert.deepEqual(open.jobs.submitted, []);
  });

  test('answers health checks under any name', async () => {
    assert.deepEqual(await ask(open, 'GET /v2/health HTTP/1.1', 'Host: evil.example'), SERVED);
    assert.deepEqual(await ask(open, 'GET /v2/health/ready HTTP/1.0', 'Accept: */*'), SERVED);
  });

  test('takes no form that a foreign page may send without asking', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      const reply = await open.post('/v2/c2pa/video', JSON.stringify(goodBody), { 'content-type': type });
      assert.equal(reply.status, 415);
    }
    const preflight = await fetch(`${open.base}/v2/c2pa/video`, {
      method: 'OPTIONS',
      headers: { 'access-control-request-method': 'POST' },
    });
    assert.equal(preflight.status, 405);
    assert.equal(preflight.headers.get('access-control-allow-origin'), null);
  });
});

test('where tokens are set, any host is served and none without a token', async () => {
  const token = 'Authorization: Bearer a-token';
  assert.deepEqual(await ask(guarded, LIST, 'Host: evil.example', 'Origin: http://other.example', token), SERVED);
  assert.deepEqual(await ask(guarded, LIST, 'Accept: */*', token), SERVED);
  assert.deepEqual(await ask(guarded, LIST, 'Host: evil.example'), [401, 'UNAUTHORIZED']);
});

test('every answer forbids to guess its type, and to keep it', async () => {
  const paths = ['/v2/jobs', '/v2/jobs/none', '/v2/health', '/openapi.json', '/docs', '/nowhere', '/%zz', '/metrics'];
  for (const path of paths) {
    const reply = await fetch(open.base + path);
    await reply.arrayBuffer();
    assert.deepEqual(
      [path, reply.headers.get('x-content-type-options'), reply.headers.get('cache-control')],
      [path, 'nosniff', 'no-store'],
    );
  }
  const { hostname, port } = new URL(open.base);
  const socket = connect(Number(port), hostname);
  socket.end('nonsense\r\n\r\n');
  let answer = '';
  for await (const chunk of socket.setEncoding('latin1')) answer += chunk;
  assert.match(answer, /^X-Content-Type-Options: nosniff\r$/m);
});
