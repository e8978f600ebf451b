import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';

const PLAIN = 'plain-token';
const HASHED = 'token-known-by-its-hash';
let server: TestServer;

before(async () => {
  const digest = createHash('sha256').update(HASHED).digest('hex').toUpperCase();
  server = await serve({ SERVICE__AUTH__TOKENS: `${PLAIN},sha256:${digest}` });
});

after(() => server.app.close());

describe('where tokens are set', () => {
  for (const authorization of [`Bearer ${PLAIN}`, `Bearer ${HASHED}`, `bearer ${PLAIN}`]) {
    test(`lets "${authorization}" in`, async () => {
      assert.equal((await server.post('/v2/c2pa/video', goodBody, { authorization })).status, 200);
    });
  }

  for (const [reason, authorization] of [
    ['TOKEN_MISSING', ''],
    ['TOKEN_MISSING', 'Bearer'],
    ['TOKEN_UNKNOWN', 'Bearer wrong'],
    ['TOKEN_MISSING', PLAIN],
    ['TOKEN_MISSING', `Basic ${PLAIN}`],
    ['TOKEN_UNKNOWN', `Bearer ${PLAIN}x`],
    ['TOKEN_UNKNOWN', `Bearer ${createHash('sha256').update(HASHED).digest('hex')}`],
    ['TOKEN_UNKNOWN', `Bearer sha256:${createHash('sha256').update(HASHED).digest('hex')}`],
  ] as const) {
    test(`answers 401 UNAUTHORIZED, ${reason}, to "${authorization.slice(0, 30)}"`, async () => {
      const reply = await server.post('/v2/c2pa/video', goodBody, { authorization });
      assert.equal(reply.headers.get('www-authenticate'), 'Bearer');
      const error = await errorOf(reply);
      assert.deepEqual([error.status, error.code, error.details], [401, 'UNAUTHORIZED', { reason }]);
    });
  }

  for (const path of ['/v2/jobs/some-job', '/v2/watermark/some-id', '/nowhere', '/v2/health/x']) {
    test(`asks for a token at ${path}`, async () => {
      assert.equal((await fetch(server.base + path)).status, 401);
    });
  }

  for (const path of ['/v2/health', '/openapi.json', '/docs', '/docs/scalar.js']) {
    test(`leaves ${path} open`, async () => {
      const reply = await fetch(server.base + path);
      await reply.arrayBuffer();
      assert.equal(reply.status, 200);
    });
  }

  test('logs no token', () => {
    assert.doesNotMatch(server.logged.join('\n'), /plain-token|token-known-by-its-hash/);
  });
});

describe('where none is set', () => {
  test('warns loudly where others can reach the address, and not on loopback', async () => {
    const isWarning = (line: string): boolean => line.includes('"level":"warn"') && line.includes('auth.tokens');
    await using open = await serve();
    assert.equal(open.logged.filter(isWarning).length, 1);
    await using local = await serve({ SERVICE__SERVER__BIND_ADDR: '127.0.0.1:8080' });
    assert.equal(local.logged.filter(isWarning).length, 0);
    assert.equal(server.logged.filter(isWarning).length, 0);
  });
});
