import assert from 'node:assert/strict';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { operations } from '#operations/registry.ts';
import { ownAddress } from '../../scripts/own-address.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { serve } from '../support/servers/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertAccessible, comeBackTo, launchBrowser, openPage } from './browser.ts';

const SAMPLES = fileURLToPath(new URL('../../samples/', import.meta.url));
/** A name that would run a script, if it were ever taken for markup. */
const MARKUP = '<img src=x onerror=document.title=1>';

const folder = temporaryFolder();
let service: RunningService;
let browser: Browser;

before(async () => {
  service = await startService({ folder: join(folder, 'service') });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const open = (path: string, base = service.base) => openPage(browser, base, path);

describe('the console', () => {
  test('shows a visitor the way to a first job, and jobs as they come', async () => {
    await using unused = await startService({ folder: join(folder, 'unused') });
    await using page = await open('', unused.base);
    await page.getByText('No jobs yet').waitFor();
    await assertAccessible(page);
    const { job_id: id } = await unused.runSync('/v2/sync/c2pa/audio', {
      inputs: [{ type: 'local_file_path', path: join(SAMPLES, 'four-notes.mp3') }],
    });
    await page.locator(`a[href="#/jobs/${id}"]`).click();
    await page.getByRole('heading', { name: 'four-notes.mp3 succeeded' }).waitFor();
    await page.getByRole('link', { name: 'Inspect' }).last().click();
    await page.locator('.verdict .state.valid').waitFor();
    await assertAccessible(page);
  });

  test('shows what failed first, with the reason, and takes no name for markup', async () => {
    const file = join(folder, `${MARKUP}.mp3`);
    await copyFile(join(SAMPLES, 'four-notes.mp3'), file);
    const { job_id: id } = await service.runSync('/v2/sync/c2pa/audio', {
      inputs: [file, join(folder, 'none.mp3')].map((path) => ({ type: 'local_file_path', path })),
    });
    await using page = await open(`#/jobs/${id}`);
    await page.getByText('SOURCE_NOT_FOUND').waitFor();
    assert.deepEqual(await page.locator('article > header').allTextContents(), [
      'failed none.mp3 Input 1',
      `succeeded ${MARKUP}.mp3 Input 0`,
    ]);
    assert.ok((await page.getByText(MARKUP).count()) > 1);
    await page.getByRole('link', { name: 'Inspect' }).last().click();
    await page.locator('.verdict .state.valid').waitFor();
    assert.equal(await page.title(), 'Attestream');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await assertAccessible(page);
    }
  });

  test('submits a job from a form, and shows the request and what is wrong with it', async () => {
    await using page = await open('#/new/c2pa-video');
    const submit = page.getByRole('button', { name: 'Submit' });
    await submit.click();
    await page.locator('#input-0-help', { hasText: 'inputs[0].path' }).waitFor();
    await page.getByLabel('Address of input 0').fill(join(SAMPLES, 'evening-light.mp4'));
    await page.getByText('Options that are written as JSON').click();
    const assertions = page.getByLabel('assertions');
    await assertions.fill('[{"label"');
    await submit.click();
    await page.getByText('This is not JSON').waitFor();
    await assertAccessible(page);
    await assertions.fill('[{"label": "com.example.review", "data": {"desk": 4}}]');
    await page.locator('pre', { hasText: '"desk": 4' }).waitFor();
    await submit.click();
    await page.locator('main :is(.state.succeeded, .state.failed)').first().waitFor();
    const [, id] = /#\/jobs\/(.+)$/.exec(page.url()) ?? [];
    const { status, results } = await service.lookUp(id ?? '');
    assert.equal(status, 'succeeded', results?.[0]?.error);
  });

  test('has a form for every operation of the API', async () => {
    await using page = await open('#/new/c2pa-video');
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await page.getByRole('form').waitFor();
    const names = await page.getByRole('group', { name: 'Operation' }).getByRole('button').allTextContents();
    const shown: (string | null)[] = [];
    for (const name of names) {
      await page.getByRole('button', { name, exact: true }).click();
      const form = page.getByRole('form', { name, exact: true }).locator('..');
      shown.push(await form.locator('code', { hasText: 'POST ' }).textContent());
      await assertAccessible(page);
    }
    assert.deepEqual(
      shown,
      operations.map(({ path }) => `POST /v2${path}`),
    );
  });

  test('offers the identities that the caller may use, where there are several', async () => {
    const file = join(folder, 'identities.toml');
    const section = (name: string) => `[signing.identities.${name}]
certificate_path = "/etc/${name}.pem"
signer = { type = "pem", private_key_path = "/etc/${name}.key" }
`;
    await writeFile(file, `[signing]\ndefault_identity = "news"\n${section('news')}${section('sport')}`);
    await using server = await serve({ SERVICE_CONFIG_PATH: file });
    await using page = await open('#/new/c2pa-video', server.base);
    const choice = page.getByLabel('identity', { exact: true });
    await choice.waitFor();
    assert.deepEqual(await choice.locator('option').allTextContents(), ['default', 'news', 'sport']);
    await choice.selectOption('sport');
    await assertAccessible(page);
    await page.getByLabel('Address of input 0').fill('/media/a.mp4');
    await page.getByRole('button', { name: 'Submit' }).click();
    await page.waitForURL(/#\/jobs\//);
    assert.deepEqual(
      server.jobs.submitted.map(({ request }) => request.params),
      [{ identity: 'sport' }],
    );
    await using other = await open('#/new/verify', server.base);
    await other.getByRole('button', { name: 'Submit' }).waitFor();
    assert.equal(await other.getByLabel('identity', { exact: true }).count(), 0);
  });

  test('shows how the node is, and its configuration', async () => {
    await using page = await open('#/status');
    await page.getByText('development identity', { exact: true }).waitFor();
    await page.getByText('(ES256, key in a file of the service)').waitFor();
    await page.getByText('Outputs are signed by a development identity.').waitFor();
    await page.getByText('output_sinks', { exact: true }).click();
    await page.getByText(join(folder, 'service/output'), { exact: true }).waitFor();
    await page.getByText('Inputs that succeeded').waitFor();
    await assertAccessible(page);
  });

  test('says that the service is gone, and goes on when it is back', async () => {
    const address = ownAddress();
    const server = await serve({}, address);
    await using page = await open('', server.base);
    await page.getByText('No jobs yet').waitFor();
    await server[Symbol.asyncDispose]();
    await comeBackTo(page);
    await page.getByText('The service cannot be reached').first().waitFor();
    await page.getByText(/^As of \d\d:\d\d, not connected\./).waitFor();
    await page.locator('header .state', { hasText: 'Not connected' }).waitFor();
    const other = createServer((_request, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"jobs":[],"next_cursor":null,"ready":true}'),
    );
    await new Promise<void>((resolve) => other.listen(address, resolve));
    await page.getByText('The service cannot be reached').first().waitFor({ state: 'detached' });
    other.close();
    other.closeAllConnections();
  });

  test('asks for a token where tokens are set, and goes on where it was', async () => {
    await using server = await serve({ SERVICE__AUTH__TOKENS: 'right-token' });
    await using page = await open('#/jobs?status=failed', server.base);
    const field = page.getByLabel('Token');
    await field.fill('wrong-token');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('does not know this token').waitFor();
    await assertAccessible(page);
    await field.fill('right-token');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('No job is like this').waitFor();
    assert.equal(await page.evaluate('document.cookie'), '');
  });
});

describe('choosing an input', () => {
  const file = `${MARKUP}.mp4`;

  before(async () => {
    await mkdir(join(folder, 'ingest/today'), { recursive: true });
    await writeFile(join(folder, 'ingest/today', file), 'bytes');
  });

  test('browses the folders of inputs for a file, whose name is no markup', async () => {
    await using server = await serve({ SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: join(folder, 'ingest') });
    await using page = await open('#/new/c2pa-video', server.base);
    await page.getByRole('button', { name: 'Browse for input 0' }).click();
    const dialog = page.getByRole('dialog', { name: 'Choose a file' });
    await dialog.getByRole('button', { name: join(folder, 'ingest') }).click();
    await dialog.getByRole('button', { name: 'today/' }).click();
    // The folder above has such a button too.
    await dialog.getByRole('button', { name: `Up, to ${join(folder, 'ingest')}` }).click();
    await dialog.getByRole('button', { name: 'today/' }).click();
    await dialog.getByText(file).waitFor();
    await assertAccessible(page);
    await dialog.getByText(file).click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Address of input 0').inputValue(), join(folder, 'ingest/today', file));
    assert.equal(await page.title(), 'Attestream');
  });
});
