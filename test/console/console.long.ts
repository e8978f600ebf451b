import assert from 'node:assert/strict';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
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
  test('offers what is a file for download: outputs of any kind and their sidecars, and no publication', async () => {
    const notes = join(folder, 'notes.bin');
    await writeFile(notes, Buffer.from('\0no media at all'));
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

  test('says that it has no forms where the API is not described', async () => {
    await using server = await serve({ SERVICE__SERVER__DOCS: 'false' });
    await using page = await open('#/new/c2pa-video', server.base);
    await page.getByText('Set server.docs to true').waitFor();
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

  test('shows the folder that was asked for last, however late another one comes', async () => {
    await using server = await serve({ SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: join(folder, 'ingest') });
    await using page = await open('#/new/package', server.base);
    await page.getByRole('button', { name: 'Browse for input 0' }).click();
    const dialog = page.getByRole('dialog', { name: 'Choose a folder' });
    await dialog.getByRole('button', { name: join(folder, 'ingest') }).click();
    const late = Promise.withResolvers<void>();
    await page.route('**/v2/inputs?*today', async (route) => {
      await late.promise;
      await route.continue();
    });
    const asked = page.waitForRequest('**/v2/inputs?*today');
    await dialog.getByRole('button', { name: 'today/' }).click();
    const answer = (await asked).response();
    await dialog.getByRole('button', { name: 'Up, to all folders' }).click();
    const roots = dialog.getByText('Folders that inputs are read from');
    await roots.waitFor();
    late.resolve();
    await (await answer)?.finished();
    await page.evaluate('new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))');
    assert.equal(await roots.count(), 1);
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
