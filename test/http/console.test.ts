import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { extname } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
const CONSOLE = new URL('../../console/', import.meta.url);
const TOKEN = 'a-token/with=signs;and%more';

/** The limit of bytes that the console transfers before it shows something. */
const FIRST_LOAD_LIMIT_BYTES = 60_000;

describe('the console', () => {
  let server: TestServer;
  before(async () => {
    server = await serve();
  });
  after(() => server.app.close());

  test('is at /, also for programs that take anything', async () => {
    for (const headers of [BROWSER, { accept: '*/*' }]) {
      const page = await fetch(server.base, { headers });
      assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/html; charset=utf-8']);
      assert.match(await page.text(), /<title>Attestream<\/title>/);
    }
  });

  test('leaves no series in the metrics, however many files a visit loads', async () => {
    await fetch(server.base, { headers: BROWSER });
    for (const path of ['console/app.js', 'console/errors.md', 'docs/scalar.js']) await fetch(`${server.base}/${path}`);
    await fetch(`${server.base}/v2/health`);
    const metrics = await (await fetch(`${server.base}/metrics`)).text();
    const routes = new Set(
      [...metrics.matchAll(/http_request_duration_seconds_count\{.*?route="([^"]*)"/g)].map((one) => one[1]),
    );
    assert.deepEqual(
      [routes.has('/v2/health'), [...routes].filter((route) => /^\/$|console|scalar/.test(route ?? ''))],
      [true, []],
    );
  });

  test('may run its own files and WebAssembly, and load nothing from elsewhere', async () => {
    const policy = (await fetch(server.base, { headers: BROWSER })).headers.get('content-security-policy') ?? '';
    const directives = new Map(policy.split('; ').map((part) => [part.split(' ')[0], part.split(' ').slice(1)]));
    assert.deepEqual(directives.get('default-src'), ["'none'"]);
    const [own, wasm, importMap, ...others] = directives.get('script-src') ?? [];
    assert.deepEqual([own, wasm, others], ["'self'", "'wasm-unsafe-eval'", []]);
    assert.match(importMap ?? '', /^'sha256-[\w+/]{43}='$/);
    assert.doesNotMatch(policy, /unsafe-inline|'unsafe-eval'|https?:|\*/);
  });

  test('sends every file that it is made of, and no other', async () => {
    const found = await readdir(CONSOLE, { recursive: true });
    for (const name of found.filter((path) => extname(path) !== '')) {
      const reply = await fetch(`${server.base}/console/${name}`);
      await reply.arrayBuffer();
      assert.equal(reply.status, 200, name);
    }
    for (const path of ['/console/', '/console/none.js', '/console/vendor/none.js', '/console/..%2fpackage.json']) {
      const reply = await fetch(server.base + path);
      assert.equal((await errorOf(reply)).status, 404, path);
    }
  });

  test('names only files that there are, and they stay small together', async () => {
    const page = await (await fetch(server.base, { headers: BROWSER })).text();
    const { imports } = JSON.parse(/<script type="importmap">([\s\S]*?)<\/script>/.exec(page)?.[1] ?? '{}');
    const seen = new Set<string>();
    let sizeBytes = 0;
    const load = async (url: string): Promise<void> => {
      if (seen.has(url)) return;
      seen.add(url);
      const reply = await fetch(url, { headers: BROWSER });
      assert.equal(reply.status, 200, url);
      const text = await reply.text();
      sizeBytes += gzipSync(text).length;
      const isPage = reply.headers.get('content-type')?.startsWith('text/html') === true;
      const links = isPage
        ? [...text.matchAll(/(?:src|href)="(console\/[^"]+)"/g)]
        : [...text.matchAll(/(?:^|[;\n}])\s*(?:import|export)\b[^'"`;()]*\bfrom\s*['"]([^'"]+)['"]/g)];
      for (const [, link = ''] of links) {
        const isOfPackage = link in imports;
        await load(new URL(isOfPackage ? imports[link] : link, isOfPackage ? server.base : url).href);
      }
    };
    await load(`${server.base}/`);
    assert.ok(seen.size > 10, `${seen.size} files`);
    assert.ok(sizeBytes < FIRST_LOAD_LIMIT_BYTES, `${sizeBytes} bytes`);
  });
});

describe('a browser with a login', () => {
  let server: TestServer;
  let origin: Record<string, string>;
  before(async () => {
    server = await serve({ SERVICE__AUTH__TOKENS: TOKEN });
    origin = { origin: server.base };
  });
  after(() => server.app.close());

  const login = async (token = TOKEN) => server.post('/v2/session', { token }, origin);
  const cookieOf = (reply: Response) => reply.headers.get('set-cookie')?.split(';')[0] ?? '';

  test('sees the page before, and no jobs', async () => {
    assert.equal((await fetch(server.base, { headers: BROWSER })).status, 200);
    assert.equal((await fetch(`${server.base}/v2/session`)).status, 401);
  });

  test('gets a cookie that no script and no other site can use', async () => {
    const reply = await login();
    assert.equal(reply.status, 204);
    assert.match(reply.headers.get('set-cookie') ?? '', /^attestream_token=[^;]+; Path=\/; HttpOnly; SameSite=Strict$/);
    const cookie = cookieOf(reply);
    assert.equal((await fetch(`${server.base}/v2/jobs`, { headers: { cookie } })).status, 200);
    const session = await (await fetch(`${server.base}/v2/session`, { headers: { cookie } })).json();
    assert.equal((session as { login_required: boolean }).login_required, true);
  });

  test('gets none for a token that is not known', async () => {
    const reply = await login('another');
    assert.deepEqual([reply.status, reply.headers.get('set-cookie')], [401, null]);
    assert.equal(
      (await fetch(`${server.base}/v2/jobs`, { headers: { cookie: 'attestream_token=another' } })).status,
      401,
    );
  });

  for (const [what, headers, status] of [
    ['from a page of this address', {}, 200],
    ['from a page of another', { origin: 'https://evil.example' }, 403],
    ['from a page of another port', { origin: 'http://127.0.0.1:1' }, 403],
    ['without an origin', { origin: undefined }, 403],
  ] as const) {
    test(`is answered ${status} when it submits a job ${what}`, async () => {
      const cookie = cookieOf(await login());
      const sent = Object.entries({ ...origin, cookie, ...headers }).filter(([, value]) => value !== undefined);
      const reply = await server.post('/v2/c2pa/video', goodBody, Object.fromEntries(sent) as Record<string, string>);
      assert.equal(reply.status, status);
    });
  }

  test('is logged out again', async () => {
    const reply = await fetch(`${server.base}/v2/session`, { method: 'DELETE', headers: origin });
    assert.equal(reply.status, 204);
    assert.match(reply.headers.get('set-cookie') ?? '', /^attestream_token=; .*Expires=Thu, 01 Jan 1970/);
  });

  test('has no token in the log', () => {
    assert.doesNotMatch(server.logged.join('\n'), /a-token/);
  });
});
