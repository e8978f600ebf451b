import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { serveJobs } from '../http/serve-jobs.ts';
import { scripts } from '../support/jobs/test-jobs.ts';
import { assertAccessible, launchBrowser, openPage } from './browser.ts';

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
  const submitted = await Promise.all(Array.from({ length: count }, () => jobs.submit(scripts(['sleep 60000']))));
  return submitted.map(({ job_id: id }) => id).sort();
}

/** The rows in view, with where they are. */
function rowsInView(page: Page): Promise<Record<string, number>> {
  return page.evaluate(`Object.fromEntries([...document.querySelectorAll('.jobs tbody tr:not(.space)')]
    .map((row) => [row.querySelector('a').hash, row.getBoundingClientRect().top])
    .filter(([, top]) => top >= 0 && top < innerHeight))`);
}

const rendered = (page: Page) => page.locator('.jobs tbody tr:not(.space)').count();

describe('the list of jobs', () => {
  test('loads older jobs as somebody scrolls, and renders those in view', async (t) => {
    const server = await serveJobs(t, { jobs: { maxRunningInputs: 0 } });
    const [oldest] = await submitMany(server.jobs, JOBS);
    await using page = await openPage(browser, server.base, '');
    await page.getByRole('table').waitFor();
    const last = page.locator(`a[href="#/jobs/${oldest}"]`);
    while ((await last.count()) === 0) {
      assert.ok((await rendered(page)) <= MAX_RENDERED_ROWS);
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    }
    await page.locator(`table[aria-rowcount="${JOBS + 1}"]`).waitFor();
    assert.equal(await last.locator('xpath=ancestor::tr').getAttribute('aria-rowindex'), String(JOBS + 1));
    await assertAccessible(page);
  });

  test('leaves rows where they are while jobs come and change, until somebody asks for the new ones', async (t) => {
    const server = await serveJobs(t, { jobs: { maxRunningInputs: 0 } });
    await submitMany(server.jobs, 100);
    await using page = await openPage(browser, server.base, '#/jobs?status=queued');
    await page.getByRole('table').waitFor();
    await page.mouse.wheel(0, 1500);
    await page.waitForFunction('scrollY === 1500');
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
});
