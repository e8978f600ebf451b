import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { temporaryFolder } from '../support/publications/make-publication.ts';
import { serve } from '../support/servers/serve.ts';
import { assertAccessible, launchBrowser, openPage } from './browser.ts';

/** A name that would run a script, if it were ever taken for markup. */
const MARKUP = '<img src=x onerror=document.title=1>.mp4';

const folder = temporaryFolder();
let browser: Browser;

before(async () => {
  await mkdir(join(folder, 'ingest/today'), { recursive: true });
  await writeFile(join(folder, 'ingest/today', MARKUP), 'bytes');
  browser = await launchBrowser();
});
after(() => browser?.close());

describe('choosing an input', () => {
  test('browses the folders of inputs for a file, whose name is no markup', async () => {
    await using server = await serve({ SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: join(folder, 'ingest') });
    await using page = await openPage(browser, server.base, '#/new/c2pa-video');
    await page.getByRole('button', { name: 'Browse for input 0' }).click();
    const dialog = page.getByRole('dialog', { name: 'Choose a file' });
    await dialog.getByRole('button', { name: join(folder, 'ingest') }).click();
    await dialog.getByRole('button', { name: 'today/' }).click();
    await dialog.getByRole('button', { name: 'Up, to' }).click();
    await dialog.getByRole('button', { name: 'today/' }).click();
    await dialog.getByText(MARKUP).waitFor();
    await assertAccessible(page);
    await dialog.getByText(MARKUP).click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Address of input 0').inputValue(), join(folder, 'ingest/today', MARKUP));
    assert.equal(await page.title(), 'Attestream');
  });

  test('browses for a folder', async () => {
    await using server = await serve({ SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: join(folder, 'ingest') });
    await using page = await openPage(browser, server.base, '#/new/package');
    await page.getByRole('button', { name: 'Browse for input 0' }).click();
    const dialog = page.getByRole('dialog', { name: 'Choose a folder' });
    await dialog.getByRole('button', { name: join(folder, 'ingest') }).click();
    await dialog.getByRole('button', { name: 'today/' }).click();
    await dialog.getByText(MARKUP).waitFor();
    await dialog.getByRole('button', { name: 'Use this folder' }).click();
    assert.equal(await page.getByLabel('Address of input 0').inputValue(), join(folder, 'ingest/today'));
  });

  test('offers no browsing where no roots are set', async () => {
    await using server = await serve();
    await using page = await openPage(browser, server.base, '');
    const refused = page.waitForResponse((answer) => answer.url().includes('/v2/inputs') && answer.status() === 404);
    await page.goto(`${server.base}/#/new/c2pa-video`);
    await refused;
    await page.getByLabel('Address of input 0').waitFor();
    assert.equal(await page.getByRole('button', { name: /Browse/ }).count(), 0);
  });
});
