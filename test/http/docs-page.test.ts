import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Browser, chromium } from 'playwright-core';
import { serve, type TestServer } from '../support/servers/serve.ts';

/** Whoever has not answered by then never will. */
const HANG_MS = 120_000;

let server: TestServer;
let browser: Browser;

before(async () => {
  server = await serve();
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
});

after(async () => {
  await browser?.close();
  await server?.app.close();
});

test('a browser shows the reference, and its Content-Security-Policy keeps nothing of it back', async () => {
  const page = await browser.newPage();
  page.setDefaultTimeout(HANG_MS);
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
