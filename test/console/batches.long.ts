import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { serveJobs } from '../http/serve-jobs.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { assertAccessible, launchBrowser, openPage } from './browser.ts';

let browser: Browser;

before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

const named = (count: number, script: string) =>
  Array.from({ length: count }, (_, index) => `${script}; /media/film-${index}.mp4`);

const rendered = '.ended tbody tr:not(.space)';

describe('a batch', () => {
  test('is a list of rows, of which those in view are rendered, as it ends', async (t) => {
    const server = await serveJobs(t);
    const id = await server.submit(...named(300, 'progress 1'), 'sleep for-ever');
    await using page = await openPage(browser, server.base, `#/jobs/${id}`);
    await page.locator('table[aria-rowcount="301"]').waitFor();
    await page.getByRole('button', { name: '300 succeeded' }).click();
    const last = page.locator(rendered, { hasText: 'film-299.mp4' });
    await until(async () => {
      assert.ok((await page.locator(rendered).count()) < 80);
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
      return (await last.count()) > 0;
    });
    assert.equal(await last.getAttribute('aria-rowindex'), '301');
    assert.equal(await page.getByRole('button', { name: /^Retry/ }).count(), 0);
    await assertAccessible(page);
  });

  test('has its cancelled inputs retried, and no others', async (t) => {
    const server = await serveJobs(t);
    const id = await server.submit('fail /media/x.mp4', ...named(6, 'sleep for-ever'));
    await until(async () => (await server.lookUp(id)).counts.failed === 1);
    await server.jobs.cancel(id);
    await server.ended(id);
    await using page = await openPage(browser, server.base, `#/jobs/${id}?status=cancelled`);
    await page.locator('.group', { hasText: '6 × cancelled' }).waitFor();
    await page.getByRole('button', { name: 'Retry these 6: cancelled' }).click();
    await page.getByRole('heading', { name: 'film-0.mp4 + 5 running' }).waitFor();
  });

  test('keeps its filter and the opened input in the address, and fits a narrow window', async (t) => {
    const server = await serveJobs(t);
    const id = await server.submit(...named(20, 'progress 1'), 'fail /media/<b>x</b>.mp4', 'bug oh');
    await server.ended(id);
    await using page = await openPage(browser, server.base, `#/jobs/${id}?status=failed`);
    await page.setViewportSize({ width: 320, height: 800 });
    await page.locator('.group').nth(1).waitFor();
    assert.equal(await page.locator(rendered).count(), 0);
    const fits = async () => assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'));
    await fits();
    await page.goto(`${server.base}/#/jobs/${id}?text=FILM-1&input=11`);
    await page.getByRole('dialog', { name: 'film-11.mp4' }).waitFor();
    await page.locator('table[aria-rowcount="12"]').waitFor();
    await fits();
    await assertAccessible(page);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.waitForURL(`**/#/jobs/${id}?text=FILM-1`);
    await page.getByLabel('Find in names and messages').fill('nothing is like this');
    await page.getByText('No input that has ended is like this.').waitFor();
  });
});
