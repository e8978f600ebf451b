import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser, takePage } from '../console/browser.ts';
import { goodBody, serve, type TestServer } from '../support/servers/serve.ts';

const EVIL = 'evil.example';

let browser: Browser;
let server: TestServer;

before(async () => {
  server = await serve();
  browser = await launchBrowser(`--host-resolver-rules=MAP ${EVIL} 127.0.0.1`);
});

after(async () => {
  await browser.close();
  await server.app.close();
});

/** A page of another name that leads to the service: what the health check answers is its (empty) document. */
async function reboundPage(): Promise<Page & AsyncDisposable> {
  const page = await takePage(browser);
  const { port } = new URL(server.base);
  await page.goto(`http://${EVIL}:${port}/v2/health`);
  return page;
}

type Sent = readonly [method: string, path: string];

/** Sends requests as the page's own; resolves with their statuses. */
const send = (page: Page, requests: readonly Sent[]): Promise<number[]> =>
  page.evaluate(
    async ({ requests, body }) => {
      const replies = requests.map(([method, path]) =>
        fetch(path, method === 'POST' ? { method, body, headers: { 'content-type': 'application/json' } } : { method }),
      );
      return (await Promise.all(replies)).map((reply) => reply.status);
    },
    { requests, body: JSON.stringify(goodBody) },
  );

describe('a page in a browser', () => {
  test('whose name was rebound to an open service can neither submit, list, follow nor delete jobs', async () => {
    await using page = await reboundPage();
    const requests: Sent[] = [
      ['POST', '/v2/c2pa/video'],
      ['GET', '/v2/jobs'],
      ['GET', '/v2/jobs/some-job/events'],
      ['DELETE', '/v2/jobs/some-job'],
      ['GET', '/metrics'],
    ];
    assert.deepEqual(await send(page, requests), [403, 403, 403, 403, 403]);
    assert.deepEqual(server.jobs.submitted, []);
  });

  test('of the service itself can use it', async () => {
    await using page = await takePage(browser);
    await page.goto(`${server.base}/docs`, { waitUntil: 'commit' });
    assert.deepEqual(await send(page, [['POST', '/v2/c2pa/video']]), [200]);
  });

  test('of the reference is shown, and its Content-Security-Policy keeps nothing of it back', async () => {
    await using page = await takePage(browser);
    const complaints: string[] = [];
    const elsewhere: string[] = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => request.url().startsWith(server.base) || elsewhere.push(request.url()));
    const reply = await page.goto(`${server.base}/docs`);
    const policy = reply?.headers()['content-security-policy'] ?? '';
    assert.match(policy, /default-src 'none'; script-src 'self';/);
    assert.doesNotMatch(policy, /script-src[^;]*unsafe/);
    await page.getByRole('heading', { name: 'Sign video files', exact: true }).waitFor();
    assert.deepEqual([complaints, elsewhere.filter((url) => !url.startsWith('data:'))], [[], []]);
  });
});
