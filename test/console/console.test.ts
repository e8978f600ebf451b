import assert from 'node:assert/strict';
import { copyFile, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
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

/** Counts the rows that the items of the header lie in. */
const ROWS_OF_HEADER = `(() => {
  let [rows, end] = [0, 0];
  for (const item of document.querySelectorAll('body > header li')) {
    const { top, bottom } = item.getBoundingClientRect();
    if (top >= end) rows += 1;
    end = Math.max(end, bottom);
  }
  return rows;
})()`;

/** Lists what hides a part of its text, or lies partly outside the window; a list of choices has to fit the longest one. */
const CUT_OFF = `[...document.querySelectorAll('body > header :is(li, a, button), form.filter :is(select, button)')]
  .filter((item) => {
    const { left, right, width } = item.getBoundingClientRect();
    const isHidden = getComputedStyle(item).overflow !== 'visible' && item.scrollWidth > item.clientWidth;
    if (left < 0 || right > innerWidth || isHidden) return true;
    if (item.tagName !== 'SELECT') return false;
    item.style.cssText = 'flex: none; width: max-content';
    const needed = item.getBoundingClientRect().width;
    item.style.cssText = '';
    return needed > width;
  })
  .map((item) => item.textContent)`;

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

  test('offers what is a file for download: outputs of any kind and their sidecars, and no publication', async () => {
    const notes = join(folder, 'notes.txt');
    await writeFile(notes, 'no media at all');
    const { job_id: id, results } = await service.runSync('/v2/sync/c2pa/video', {
      inputs: [{ type: 'local_file_path', path: notes }],
      params: { manifest: 'sidecar' },
    });
    await using page = await open(`#/jobs/${id}`);
    const [result] = results;
    for (const path of [result?.output_path ?? '', result?.sidecar_path ?? '']) {
      const download = page.waitForEvent('download');
      await page.getByRole('link', { name: `Download ${basename(path)}`, exact: true }).click();
      assert.deepEqual(await readFile(await (await download).path()), await readFile(path));
    }
    const publication = join(folder, 'named-like-a-film.mp4');
    await cp(join(SAMPLES, 'publication'), publication, { recursive: true });
    const { job_id: publicationId } = await service.runSync('/v2/sync/c2pa/fragmented', {
      inputs: [{ type: 'local_folder_path', path: publication }],
      params: { playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init-*.mp4', frag_pattern: 'fragment-*.m4s' },
    });
    await page.goto(`${service.base}/#/jobs/${publicationId}`);
    await page.getByRole('heading', { name: 'named-like-a-film.mp4 succeeded' }).waitFor();
    await page.getByRole('link', { name: 'Play', exact: true }).waitFor();
    assert.equal(await page.getByRole('link', { name: /^Download/ }).count(), 0);
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
    await page.locator('.state.succeeded').first().waitFor();
    const [, id] = /#\/jobs\/(.+)$/.exec(page.url()) ?? [];
    assert.equal((await service.lookUp(id ?? '')).status, 'succeeded');
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

  test('says that it has no forms where the API is not described', async () => {
    await using server = await serve({ SERVICE__SERVER__DOCS: 'false' });
    await using page = await open('#/new/c2pa-video', server.base);
    await page.getByText('Set server.docs to true').waitFor();
  });

  test('shows how the node is, and its configuration', async () => {
    await using page = await open('#/status');
    await page.getByText('development identity', { exact: true }).waitFor();
    await page.getByText('(ES256)').waitFor();
    await page.getByText('output_sinks', { exact: true }).click();
    await page.getByText(join(folder, 'service/output'), { exact: true }).waitFor();
    await page.getByText('Inputs that succeeded').waitFor();
    await assertAccessible(page);
  });

  test('keeps the colours that were chosen', async () => {
    await using page = await open('#/status');
    const background = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    const light = await background();
    await page.getByRole('button', { name: 'Switch to dark colours' }).click();
    const dark = await background();
    assert.notEqual(dark, light);
    await page.reload();
    await page.getByRole('button', { name: 'Switch to light colours' }).waitFor();
    assert.equal(await background(), dark);
  });

  test('says that a job is not known', async () => {
    await using page = await open('#/jobs/none');
    await page.getByText('There is no job "none"').waitFor();
  });

  for (const hash of ['#/nothing', '#/%', '#/jobs/%', '#/jobs/%E0%A4%A?status=failed']) {
    test(`says that there is no page at ${hash}`, async () => {
      await using page = await open(hash);
      await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
      await page.getByRole('link', { name: 'the jobs' }).click();
      await page.getByRole('heading', { name: 'Jobs' }).waitFor();
    });
  }

  test('says that the service is gone, and goes on when it is back', async () => {
    const address = ownAddress();
    const server = await serve({}, address);
    await using page = await open('', server.base);
    await page.getByText('No jobs yet').waitFor();
    await server[Symbol.asyncDispose]();
    await comeBackTo(page);
    await page.getByText('The service cannot be reached').first().waitFor();
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

  test('works behind a prefix of the path', async () => {
    await using server = await serve();
    const { hostname, port } = new URL(server.base);
    const proxy = createServer((incoming, response) => {
      const path = incoming.url?.replace(/^\/media-tools/, '');
      const { method, headers } = incoming;
      incoming.pipe(
        request({ hostname, port, path, method, headers }, (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
        }),
      );
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    {
      await using page = await open('media-tools/', base);
      await page.getByText('No jobs yet').waitFor();
      await page.getByRole('link', { name: 'Status' }).click();
      await page.getByText('Version').waitFor();
      await assertAccessible(page);
    }
    proxy.close();
    proxy.closeAllConnections();
  });

  test('shows the state of the node again after a proxy answered in its place', async () => {
    await using page = await open('#/inspect');
    const header = page.locator('body > header');
    await header.getByText('Ready', { exact: true }).waitFor();
    let isInTheWay = true;
    await page.route('**/v2/health/ready', async (route) => {
      if (isInTheWay)
        await route.fulfill({ status: 503, contentType: 'text/html', body: '<h1>Service Unavailable</h1>' });
      else await route.fulfill({ json: { ready: true, queue: { waiting: 7 }, workers: { running: 0 } } });
    });
    await comeBackTo(page);
    await page.getByText('cannot be reached').first().waitFor();
    isInTheWay = false;
    await header.getByText('7 waiting').waitFor();
  });

  test('has a header of two rows in a narrow window, and cuts nothing off', async () => {
    await using page = await open('#/status');
    const busy = { ready: false, queue: { waiting: 10_000, capacity: 10_000 }, workers: { running: 16 } };
    await page.route('**/v2/health/ready', (route) => route.fulfill({ status: 503, json: busy }));
    await page.setViewportSize({ width: 320, height: 800 });
    for (const name of ['New', 'Inspect', 'Jobs']) {
      await page.getByRole('link', { name, exact: true }).focus();
      await page.keyboard.press('Enter');
      await page.locator('body > header a[aria-current=page]', { hasText: name }).waitFor();
    }
    await comeBackTo(page);
    await page.locator('body > header', { hasText: '10000 waiting, 16 running' }).waitFor();
    await page.locator('form.filter').waitFor();
    assert.equal(await page.evaluate(ROWS_OF_HEADER), 2);
    assert.deepEqual(await page.evaluate(CUT_OFF), []);
    await assertAccessible(page);
  });

  for (const width of [320, 1440]) {
    test(`fits a window of ${width} pixels`, async () => {
      await service.submit('/v2/verify', { inputs: [{ type: 'local_file_path', path: join(folder, 'none.mp4') }] });
      await using page = await open('');
      await page.setViewportSize({ width, height: 800 });
      await page.getByRole('table').waitFor();
      for (const [hash, name] of [
        ['#/jobs', 'Jobs'],
        ['#/new/c2pa-package', 'New job'],
        ['#/inspect', 'Inspect'],
        ['#/status', 'Status ready'],
      ] as const) {
        await page.evaluate(`location.hash = '${hash}'`);
        await page.getByRole('heading', { level: 1, name }).waitFor();
        await page.locator('main p[aria-busy]').first().waitFor({ state: 'detached' });
        const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        assert.ok(Number(overflow) <= 0, `${hash}: ${overflow} pixels too wide`);
      }
    });
  }
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
    await dialog.getByRole('button', { name: 'Up, to' }).click();
    await dialog.getByRole('button', { name: 'today/' }).click();
    await dialog.getByText(file).waitFor();
    await assertAccessible(page);
    await dialog.getByText(file).click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Address of input 0').inputValue(), join(folder, 'ingest/today', file));
    assert.equal(await page.title(), 'Attestream');
  });

  test('browses for a folder', async () => {
    await using server = await serve({ SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: join(folder, 'ingest') });
    await using page = await open('#/new/package', server.base);
    await page.getByRole('button', { name: 'Browse for input 0' }).click();
    const dialog = page.getByRole('dialog', { name: 'Choose a folder' });
    await dialog.getByRole('button', { name: join(folder, 'ingest') }).click();
    await dialog.getByRole('button', { name: 'today/' }).click();
    await dialog.getByText(file).waitFor();
    await dialog.getByRole('button', { name: 'Use this folder' }).click();
    assert.equal(await page.getByLabel('Address of input 0').inputValue(), join(folder, 'ingest/today'));
  });

  test('offers no browsing where no roots are set', async () => {
    await using server = await serve();
    await using page = await open('', server.base);
    const refused = page.waitForResponse((answer) => answer.url().includes('/v2/inputs') && answer.status() === 404);
    await page.goto(`${server.base}/#/new/c2pa-video`);
    await refused;
    await page.getByLabel('Address of input 0').waitFor();
    assert.equal(await page.getByRole('button', { name: /Browse/ }).count(), 0);
  });
});
