import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { serveJobs } from '../http/serve-jobs.ts';
import { scripts, until } from '../support/jobs/test-jobs.ts';
import { serve } from '../support/servers/serve.ts';
import { assertAccessible, comeBackTo, launchBrowser, openPage } from './browser.ts';

let browser: Browser;

before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

/** More than are loaded at once, and many more than a window shows. */
const JOBS = 600;

/** Rows that a window of this size needs at most, with those beyond its edges. */
const MAX_RENDERED_ROWS = 80;

/** Jobs that wait for ever: nothing runs. */
async function submitMany(
  jobs: { submit(submission: ReturnType<typeof scripts>): Promise<{ job_id: string }> },
  count: number,
) {
  const submitted = await Promise.all(Array.from({ length: count }, () => jobs.submit(scripts(['sleep for-ever']))));
  return submitted.map(({ job_id: id }) => id).sort();
}

/** The rows in view, with where they are. */
function rowsInView(page: Page): Promise<Record<string, number>> {
  return page.evaluate(`Object.fromEntries([...document.querySelectorAll('.jobs tbody tr:not(.space)')]
    .map((row) => [row.querySelector('a').hash, row.getBoundingClientRect().top])
    .filter(([, top]) => top >= 0 && top < innerHeight))`);
}

/** Scrolls by script, as soon as the page is high enough: a wheel that turns before its first frame with the rows moves nothing. */
async function scrollDown(page: Page): Promise<void> {
  await until(async () => (await page.evaluate('scrollTo(0, 1500), scrollY')) === 1500);
}

/** Waits until rows, and no space for rows, fill the window. */
async function rowsFillWindow(page: Page): Promise<void> {
  await page.waitForFunction(`(() => {
    const rows = [...document.querySelectorAll('.jobs tbody tr:not(.space)')].map((row) => row.getBoundingClientRect());
    return rows.at(0)?.top <= 0 && rows.at(-1)?.bottom >= innerHeight;
  })()`);
}

/** Scrolls to the end of what is loaded, again and again, until a job is there. */
async function scrollUntilShown(page: Page, jobId: string): Promise<void> {
  await until(async () => {
    if ((await page.locator(`a[href="#/jobs/${jobId}"]`).count()) > 0) return true;
    assert.ok((await rendered(page)) <= MAX_RENDERED_ROWS);
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    return false;
  });
}

const rendered = (page: Page) => page.locator('.jobs tbody tr:not(.space)').count();

describe('the list of jobs', () => {
  test('loads older jobs as somebody scrolls, and renders those in view', async (t) => {
    const server = await serveJobs(t, { jobs: { maxRunningInputs: 0 } });
    const [oldest = ''] = await submitMany(server.jobs, JOBS);
    await using page = await openPage(browser, server.base, '');
    await page.getByRole('table').waitFor();
    await scrollUntilShown(page, oldest);
    const last = page.locator(`a[href="#/jobs/${oldest}"]`);
    await page.locator(`table[aria-rowcount="${JOBS + 1}"]`).waitFor();
    assert.equal(await last.locator('xpath=ancestor::tr').getAttribute('aria-rowindex'), String(JOBS + 1));
    await assertAccessible(page);
  });

  test('leaves rows where they are while jobs come and change, until somebody asks for the new ones', async (t) => {
    const server = await serveJobs(t, { jobs: { maxRunningInputs: 0 } });
    await submitMany(server.jobs, 100);
    await using page = await openPage(browser, server.base, '#/jobs?status=queued');
    await page.getByRole('table').waitFor();
    await scrollDown(page);
    await rowsFillWindow(page);
    const seen = await rowsInView(page);
    const [, link = ''] = Object.keys(seen);
    await server.jobs.cancel(link.replace('#/jobs/', ''));
    const [newest] = await submitMany(server.jobs, 1);
    const update = page.getByRole('button', { name: /^Update the list \(2\)$/ });
    await update.waitFor();
    assert.deepEqual(await rowsInView(page), seen);
    await update.click();
    await page.locator(`a[href="#/jobs/${newest}"]`).waitFor();
    assert.equal((await page.locator('.jobs tbody a').first().getAttribute('href'))?.replace('#/jobs/', ''), newest);
    assert.equal(await page.locator(`a[href="${link}"]`).count(), 0);
  });

  test('goes on to the oldest job although more jobs come than are loaded at once', async (t) => {
    const server = await serveJobs(t, { jobs: { maxRunningInputs: 0 } });
    const [oldest = ''] = await submitMany(server.jobs, 300);
    await using page = await openPage(browser, server.base, '');
    await page.getByRole('table').waitFor();
    await scrollDown(page);
    const newest = (await submitMany(server.jobs, 120)).at(-1);
    const update = page.getByRole('button', { name: /^Update the list/ });
    await update.waitFor();
    await scrollUntilShown(page, oldest);
    await update.click();
    await page.locator(`a[href="#/jobs/${newest}"]`).waitFor();
    await scrollUntilShown(page, oldest);
    await page.locator('table[aria-rowcount="421"]').waitFor();
  });

  test('shows jobs as they come and change, by one stream', async (t) => {
    const server = await serveJobs(t);
    await using page = await openPage(browser, server.base, '#/status');
    const streams: string[] = [];
    page.on('request', (sent) => {
      if (sent.url().endsWith('/v2/events')) streams.push(sent.url());
    });
    await page.goto(`${server.base}/#/jobs`);
    await page.getByText('No jobs yet').waitFor();
    const id = await server.submit('sleep for-ever');
    const row = page.locator('.jobs tr', { has: page.locator(`a[href="#/jobs/${id}"]`) });
    await row.locator('.state.running').waitFor();
    await server.jobs.cancel(id);
    await row.locator('.state.failed').waitFor();
    assert.equal(streams.length, 1);
  });

  test('asks for the jobs where there is no stream', async (t) => {
    const server = await serveJobs(t);
    await using page = await openPage(browser, server.base, '#/inspect');
    await page.route('**/v2/events', (route) => route.abort());
    await page.goto(`${server.base}/#/jobs`);
    await page.getByText('No jobs yet').waitFor();
    const id = await server.submit('sleep for-ever');
    await page.locator(`a[href="#/jobs/${id}"]`).waitFor();
    await server.jobs.cancel(id);
    await page.locator('.state.failed').waitFor();
  });

  test('shows no job with a state that it has left, where there is no stream', async (t) => {
    const server = await serveJobs(t, { jobs: { maxRunningInputs: 0 } });
    const [first = '', second = '', third] = await submitMany(server.jobs, 3);
    await using page = await openPage(browser, server.base, '#/inspect');
    await page.route('**/v2/events', (route) => route.abort());
    await page.goto(`${server.base}/#/jobs?status=queued`);
    const rowOf = (id: string | undefined) =>
      page.locator('.jobs tbody tr', { has: page.locator(`a[href="#/jobs/${id}"]`) });
    await rowOf(first).waitFor();
    await server.jobs.cancel(first);
    await comeBackTo(page);
    await rowOf(first).waitFor({ state: 'detached' });
    await rowOf(second).hover();
    await server.jobs.cancel(second);
    await comeBackTo(page);
    await rowOf(second).locator('.state:not(.queued)').waitFor();
    assert.equal(await rowOf(third).locator('.state.queued').count(), 1);
    await page.mouse.move(0, 0);
    await rowOf(second).waitFor({ state: 'detached' });
  });

  test('does not take a job back by an answer that is older than the stream', async (t) => {
    const server = await serveJobs(t, { jobs: { maxRunningInputs: 0 } });
    const [id = ''] = await submitMany(server.jobs, 1);
    await using page = await openPage(browser, server.base, '#/inspect');
    const stream = page.waitForResponse('**/v2/events');
    await page.goto(`${server.base}/#/jobs?status=queued`);
    const row = page.locator(`a[href="#/jobs/${id}"]`);
    await Promise.all([row.waitFor(), stream]);
    const asked = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    await page.route('**/v2/jobs?*', async (route) => {
      const response = await route.fetch({ timeout: 0 });
      asked.resolve();
      await released.promise;
      await route.fulfill({ response });
    });
    await comeBackTo(page);
    await asked.promise;
    await server.jobs.cancel(id);
    await row.waitFor({ state: 'detached' });
    await page.evaluate(`new MutationObserver(() => {
      if (document.querySelector('a[href="#/jobs/${id}"]') !== null) globalThis.wasBack = true;
    }).observe(document.body, { childList: true, subtree: true })`);
    released.resolve();
    const [next] = await submitMany(server.jobs, 1);
    await page.locator(`a[href="#/jobs/${next}"]`).waitFor();
    assert.equal(await page.evaluate('globalThis.wasBack'), undefined);
  });

  test('is filtered by what jobs are recognised by, and takes no name for markup', async (t) => {
    const server = await serveJobs(t, { jobs: { maxRunningInputs: 0 } });
    const body = { client_reference: '<img src=x onerror=document.title=1>', labels: { desk: '<b>4</b>' } };
    const reply = await server.post('/v2/c2pa/video', ['sleep for-ever'], { body });
    const { job_id: id } = (await reply.json()) as { job_id: string };
    await server.submit('sleep for-ever');
    await using page = await openPage(browser, server.base, '');
    await page.getByRole('link', { name: body.client_reference }).click();
    await page.getByRole('heading', { name: `${body.client_reference} queued` }).waitFor();
    await page.getByText('The request').click();
    await page.locator('pre', { hasText: body.client_reference }).waitFor();
    await assertAccessible(page);
    await page.getByRole('link', { name: 'desk=<b>4</b>' }).click();
    await page.locator(`a[href="#/jobs/${id}"]`).waitFor();
    assert.equal(await rendered(page), 1);
    await page.getByRole('button', { name: /^Remove the filter label/ }).click();
    await page.locator('table[aria-rowcount="3"]').waitFor();
    await page.getByLabel('Text to find').fill(body.client_reference);
    await page.getByRole('button', { name: 'Find' }).click();
    await page.locator('table[aria-rowcount="2"]').waitFor();
    await page.getByLabel('Operation').selectOption('verify');
    await page.getByText('No job is like this').waitFor();
    assert.equal(await page.title(), 'Attestream');
  });
});

describe('a job', () => {
  test('shows inputs as they end, with the documentation of their errors', async (t) => {
    const server = await serveJobs(t);
    const id = await server.submit('fail /media/x.mp4', 'sleep for-ever', 'progress 5');
    await using page = await openPage(browser, server.base, `#/jobs/${id}`);
    const entry = page.locator('article', { hasText: 'Input 0' });
    await entry.locator('.state.failed').waitFor();
    await page.locator('article', { hasText: 'Input 2' }).locator('.state.succeeded').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('1 failed, 1 cancelled, 1 succeeded').waitFor();
    await assertAccessible(page);
    const reason = await entry.locator('code').first().textContent();
    await entry.getByRole('link', { name: 'Open documentation' }).click();
    await page.getByRole('heading', { name: reason ?? '' }).waitFor();
    await assertAccessible(page);
    await page.goBack();
    await page.getByRole('button', { name: 'Retry the failed input' }).click();
    await page.getByRole('link', { name: 'retried from another job' }).waitFor();
    await page.getByRole('heading', { name: 'x.mp4 failed' }).waitFor();
  });
});

describe('a request as a command', () => {
  for (const [env, header] of [
    [{ SERVICE__AUTH__TOKENS: 'right-token' }, true],
    [{}, false],
  ] as const) {
    test(`${header ? 'takes the token from a variable where tokens are set' : 'has no token where none are set'}`, async () => {
      await using server = await serve(env);
      await using page = await openPage(browser, server.base, '');
      if (header) {
        await page.getByLabel('Token').fill('right-token');
        await page.getByRole('button', { name: 'Log in' }).click();
      }
      const isShown = page
        .locator('pre', { hasText: 'curl' })
        .filter({ hasText: '"Authorization: Bearer $ATTESTREAM_TOKEN"' });
      await page.getByText('No jobs yet').waitFor();
      await page.evaluate(
        'navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve(); }',
      );
      if (header) await isShown.waitFor();
      await page.evaluate("location.hash = '#/new/c2pa-video'");
      await page.getByRole('button', { name: 'Copy as curl' }).click();
      const copied = String(await page.evaluate('globalThis.copied'));
      assert.deepEqual(
        [copied.includes('"Authorization: Bearer $ATTESTREAM_TOKEN"'), copied.includes('right-token')],
        [header, false],
      );
    });
  }
});

describe('a page that was left open', () => {
  test('asks for a token when the login has expired, and goes on where it was', async () => {
    await using server = await serve({ SERVICE__AUTH__TOKENS: 'right-token' });
    await using page = await openPage(browser, server.base, '#/jobs?status=failed');
    const login = async () => {
      await page.getByLabel('Token').fill('right-token');
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.getByText('No job is like this').waitFor();
    };
    await login();
    await page.context().clearCookies();
    await comeBackTo(page);
    await login();
    assert.equal(new URL(page.url()).hash, '#/jobs?status=failed');
  });

  test('says that the service is gone, and shows what happened meanwhile when it is back', async (t) => {
    const server = await serveJobs(t);
    await using page = await openPage(browser, server.base, '');
    await page.getByText('No jobs yet').waitFor();
    await page.context().setOffline(true);
    const banner = page.getByText('The service cannot be reached');
    await banner.waitFor();
    const id = await server.submit('sleep for-ever');
    await page.context().setOffline(false);
    await page.locator(`a[href="#/jobs/${id}"]`).waitFor();
    await banner.waitFor({ state: 'detached' });
  });
});
