import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { Config } from '#config/config.ts';
import { Metrics, UNKNOWN_STATE } from '#telemetry/metrics.ts';
import { serveJobs } from '../http/serve-jobs.ts';
import { TestIdentities, withIdentities } from '../support/jobs/test-identities.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { IDLE_NODE } from '../support/jobs/test-telemetry.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertAccessible, launchBrowser, openPage } from './browser.ts';

let browser: Browser;

before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

/** Scripts of inputs, of which the script names the number. */
const times = (count: number, script: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => script(index));

const missing = (count: number) => times(count, (index) => `fail /media/clip-${index}.mp4`);
const refused = (count: number) =>
  times(count, (index) => `fail-read-back assertion.dataHash.mismatch; /media/film-${index}.mp4`);
const signed = (count: number) => times(count, (index) => `progress 1; /media/report-${index}.mp4`);

const assertAccessibleInBothThemes = async (page: Page) => {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await assertAccessible(page);
  }
};

describe('a batch', () => {
  test('shows 80 failed inputs on one screen, by reason, and one of them on request', async (t) => {
    const server = await serveJobs(t);
    const id = await server.submit(...missing(54), ...refused(26));
    await server.ended(id);
    await using page = await openPage(browser, server.base, `#/jobs/${id}`);
    const groups = page.locator('.group');
    await groups.nth(1).waitFor();
    assert.deepEqual(await groups.locator('.count').allTextContents(), ['54 ×', '26 ×']);
    assert.equal(await page.getByText('There is nothing at').count(), 1);
    assert.ok(await groups.getByText('clip-0.mp4, clip-1.mp4, clip-2.mp4, clip-3.mp4, clip-4.mp4, …').isVisible());
    assert.ok(await page.evaluate("document.querySelector('main').getBoundingClientRect().bottom <= innerHeight"));
    await assertAccessibleInBothThemes(page);
    await page.getByRole('link', { name: 'Show all of SOURCE_NOT_FOUND' }).click();
    await page.locator('table[aria-rowcount="55"]').waitFor();
    assert.ok((await page.locator('.ended tbody tr:not(.space)').count()) < 54);
    await page.getByLabel('Find in names and messages').fill('clip-53');
    await page.locator('table[aria-rowcount="2"]').waitFor();
    await page.getByRole('link', { name: 'clip-53.mp4' }).click();
    const dialog = page.getByRole('dialog', { name: 'clip-53.mp4' });
    await dialog.getByText('There is nothing at "/media/clip-53.mp4"').waitFor();
    await assertAccessible(page);
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.waitForURL(`**/#/jobs/${id}?group=SOURCE_NOT_FOUND&text=clip-53`);
  });

  test('is retried for one reason, and says what is wrong with that', async (t) => {
    const server = await serveJobs(t);
    const id = await server.submit(...missing(4), ...refused(2), ...signed(2));
    await server.ended(id);
    await using page = await openPage(browser, server.base, `#/jobs/${id}`);
    await page.locator('.ended a', { hasText: 'report-1.mp4' }).waitFor();
    await page.route('**/retry', (route) => route.abort(), { times: 1 });
    await page.getByRole('button', { name: 'Retry these 2: READ_BACK_FAILED' }).click();
    await page.getByRole('alert').getByText('The service cannot be reached').waitFor();
    await page.getByRole('button', { name: 'Retry these 2: READ_BACK_FAILED' }).click();
    await page.getByRole('link', { name: 'retried from another job' }).waitFor();
    const [, retry = ''] = /#\/jobs\/(.+)$/.exec(page.url()) ?? [];
    const { input_names: names, retried_from: from } = await server.lookUp(retry);
    assert.deepEqual([names, from], [['film-0.mp4', 'film-1.mp4'], id]);
  });

  test('names the inputs that failed, and the first reason, in the list', async (t) => {
    const server = await serveJobs(t);
    const id = await server.submit(...missing(2), ...signed(1));
    await server.ended(id);
    await using page = await openPage(browser, server.base, '');
    await page.getByText('SOURCE_NOT_FOUND').waitFor();
    assert.deepEqual(await page.locator('.jobs tbody td').nth(2).textContent(), '3, 2 failedSOURCE_NOT_FOUND');
  });
});

describe('inputs that wait', () => {
  test('are counted in the list, on the page of the job, and explained by Status', async (t) => {
    const away = join(temporaryFolder(), 'away');
    writeFileSync(away, '');
    const problemOf = async () => 'it is away';
    const server = await serveJobs(t, { jobs: { probes: { problemOf, minPauseMs: () => 0 } } });
    const id = await server.submit(...times(3, (index) => `sign-unless ${away}; /media/film-${index}.mp4`));
    await until(async () => (await server.lookUp(id)).waiting_for?.[0]?.inputs === 3);
    await using page = await openPage(browser, server.base, '');
    const sentence = /^3 inputs wait since \d\d:\d\d for the signing identity/;
    await page.locator('.jobs td').getByText(sentence).waitFor();
    await assertAccessibleInBothThemes(page);
    await page.locator(`a[href="#/jobs/${id}"]`).click();
    await page.locator('.waits').getByText(sentence).waitFor();
    await assertAccessibleInBothThemes(page);
    await page.locator('.waits').getByRole('link', { name: 'Open documentation of SIGNATURE_FAILED' }).click();
    await page.getByText('the input waits until it is back').waitFor();
    await page.goto(`${server.base}/#/status`);
    const attention = page.getByRole('list', { name: 'Needs attention' });
    await attention.getByText(/^The signing identity "default": away since \d\d:\d\d\./).waitFor();
    await page.getByText('Inputs that wait').waitFor();
    await page.getByText('Free for outputs').waitFor();
    await assertAccessibleInBothThemes(page);
    rmSync(away);
    await page.goto(`${server.base}/#/jobs/${id}`);
    await server.jobs.cancel(id);
    await page.locator('.waits').waitFor({ state: 'detached' });
  });
});

test('Status shows each identity with its key and expiry, and says why one is away', async (t) => {
  const identities = new TestIdentities('news', 'sport', 'weather');
  identities.identities = identities.identities.map((one) =>
    one.name === 'news' ? { ...one, keyKind: 'pkcs11', publisher: { ...one, subject: 'O=Example News' } } : one,
  );
  identities.remove('weather', 'the device does not answer');
  const config = (given: Config) => withIdentities(given, 'news', 'sport', 'weather');
  const server = await serveJobs(t, { config, jobs: { signer: identities.signer } });
  await server.jobs.identitiesChanged();
  await using page = await openPage(browser, server.base, '#/status');
  const shown = page.locator('dt', { hasText: 'Signing identities' }).locator('~ dd');
  await shown.filter({ hasText: 'weather' }).waitFor();
  const texts = (await shown.allTextContents()).map((text) => text.trim().replace(/\s+/g, ' '));
  assert.match(
    texts.join('\n'),
    /^in order news: CN=Signer \(ES256, key in a PKCS #11 token\), expires in \d+ days; published by O=Example News.*\nin order sport: CN=Signer \(ES256, key in a PEM file\), expires in \d+ days\naway weather, key in a PEM file$/,
  );
  const attention = page.getByRole('list', { name: 'Needs attention' });
  await attention.getByText(/^The signing identity "weather": away since/).waitFor();
  await attention.getByText('the device does not answer').waitFor();
  const rows = "[...document.querySelector('.facts').querySelectorAll('dd')]";
  const lefts = await page.evaluate(`${rows}.map((row) => row.getBoundingClientRect().left)`);
  assert.equal(new Set(lefts as number[]).size, 1);
  await assertAccessibleInBothThemes(page);
});

test('Status begins with nodes that were lost and disks that are almost full', async (t) => {
  const server = await serveJobs(t);
  await using page = await openPage(browser, server.base, '');
  const metrics = new Metrics({
    store: async () => UNKNOWN_STATE,
    node: () => ({
      ...IDLE_NODE,
      otherNodes: [
        { name: 'studio-2, process 7', isAlive: true, seenAtMs: Date.now() },
        { name: 'studio-3, process 9', isAlive: false, seenAtMs: Date.now() - 60_000 },
      ],
    }),
    disks: () => ({ outputs: { freeBytes: 4e9, sizeBytes: 100e9 }, scratch: { freeBytes: 50e9, sizeBytes: 100e9 } }),
    version: '0.0.0',
    operations: [],
  });
  await page.route('**/metrics', async (route) => route.fulfill({ body: await metrics.render() }));
  await page.goto(`${server.base}/#/status`);
  await page.locator('.charts').getByText('2, 1 lost').waitFor();
  const attention = page.getByRole('list', { name: 'Needs attention' });
  await attention.getByText('studio-3, process 9').waitFor();
  await attention.getByText('The disk of outputs has 4 GB left.').waitFor();
  assert.equal(await attention.getByRole('listitem').count(), 2);
  await page.locator('.charts').getByText('50 GB of 100 GB').waitFor();
  await assertAccessibleInBothThemes(page);
});
