import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import type { JobResultResponse } from '#contract/job.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { filesWithXmp, xmpNaming } from '../provenance/files-with-xmp.ts';
import { plainParent, signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { ffmpeg, makeFilm } from '../support/media/make-film.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertAccessible, launchBrowser, openPage } from './browser.ts';

const SAMPLES = fileURLToPath(new URL('../../samples/', import.meta.url));
const PLAY = fileURLToPath(new URL('../../scripts/play.ts', import.meta.url));
const PATTERNS = { playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init-*.mp4', frag_pattern: 'fragment-*.m4s' };
/** Where the second fragment of the sample's picture begins, in seconds: after one of 2.6. */
const ALTERED = { file: 'fragment-0-2.m4s', index: 1, seconds: 2.6, endSeconds: 4.88 };

const folder = temporaryFolder();
let service: RunningService;
let browser: Browser;

/** Signs with an identity of the trust list "newsroom". */
before(async () => {
  const identity = await testIdentity();
  const { certificatePath, privateKeyPath } = writeIdentity(folder, identity);
  writeFileSync(join(folder, 'newsroom.pem'), pemOf(identity.chain.at(-1) as Buffer));
  service = await startService({
    folder: join(folder, 'service'),
    settings: {
      SERVICE__SIGNING__CERTIFICATE_PATH: certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: privateKeyPath,
      SERVICE__TRUST__ANCHORS: join(folder, 'newsroom.pem'),
    },
  });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const open = (path: string) => openPage(browser, service.base, path);

async function sign(path: string, input: string, params?: object): Promise<JobResultResponse & { output: string }> {
  const isFolder = path !== '/v2/sync/c2pa/video' && path !== '/v2/sync/c2pa/audio';
  const job = await service.runSync(path, {
    inputs: [{ type: isFolder ? 'local_folder_path' : 'local_file_path', path: input }],
    ...(params && { params }),
  });
  assert.equal(job.status, 'succeeded', job.results[0]?.error);
  return { ...job, output: job.results[0]?.output_path ?? '' };
}

function signPublication(name: string): Promise<JobResultResponse & { output: string }> {
  const input = join(folder, name);
  cpSync(join(SAMPLES, 'publication'), input, { recursive: true });
  return sign('/v2/sync/c2pa/fragmented', input, PATTERNS);
}

async function alter(path: string): Promise<void> {
  const bytes = await readFile(path);
  bytes.writeUInt8((bytes.at(-20) ?? 0) ^ 1, bytes.length - 20);
  await writeFile(path, bytes);
}

function written(name: string, bytes: Uint8Array | string): string {
  writeFileSync(join(folder, name), bytes);
  return join(folder, name);
}

const drop = (page: Page, path: string) => page.locator('input[type=file]').setInputFiles(path);
const card = (page: Page) => page.locator('article.card');

describe('the page that inspects', () => {
  test('tells of an output who signed it, on which trust list they are, what was done, and what it was made from', async () => {
    const { job_id: id } = await sign('/v2/sync/c2pa/video', join(SAMPLES, 'evening-light.mp4'));
    await using page = await open(`#/inspect?job=${id}&index=0`);
    await page.locator('.verdict .state.trusted').waitFor();
    for (const text of ['Attestream tests, Test signer', 'newsroom', 'evening-light_c2pa.mp4', 'Opened for editing']) {
      await card(page).getByText(text, { exact: true }).first().waitFor();
    }
    assert.deepEqual(await page.locator('.tree li .state').allTextContents(), ['No provenance']);
    assert.equal(await page.getByText('development identity').count(), 0);
    await page.getByText('Everything that the reader reports').click();
    await page.locator('pre', { hasText: '"trust_list": "newsroom"' }).waitFor();
    await assertAccessible(page);
  });

  test('tells what of a publication is not what was signed, and where', async () => {
    const { job_id: id, output } = await signPublication('inspected');
    await alter(join(output, ALTERED.file));
    await using page = await open(`#/inspect?job=${id}&index=0`);
    await page.locator('.verdict .state.invalid').waitFor();
    const deviation = page.locator('.deviations li');
    assert.equal(await deviation.count(), 1);
    assert.deepEqual(await deviation.evaluate(({ dataset }: { dataset: Record<string, string> }) => ({ ...dataset })), {
      kind: 'altered',
      index: String(ALTERED.index),
      seconds: String(ALTERED.seconds),
    });
    await deviation.getByText(ALTERED.file).waitFor();
    await assertAccessible(page);
  });

  test('reads a file that is dropped with the trust lists of the service, and sends it nowhere', async () => {
    const { output } = await sign('/v2/sync/c2pa/audio', join(SAMPLES, 'four-notes.mp3'));
    await using page = await open('#/inspect');
    const sent: string[] = [];
    page.on('request', (asked) => {
      if (asked.method() !== 'GET') sent.push(asked.url());
    });
    await drop(page, output);
    await page.locator('.verdict .state.trusted').waitFor();
    await card(page).getByText('newsroom', { exact: true }).waitFor();
    await drop(page, join(SAMPLES, 'four-notes.mp3'));
    await page.locator('.verdict .state.none').waitFor();
    assert.deepEqual(sent, []);
  });

  test('names in the verdict an ingredient that was altered before it was added', async () => {
    const path = written('parent.wav', (await signWav(testAuthor())).bytes);
    await alter(path);
    const origin = { kind: 'file', path, title: 'parent.wav', mediaType: 'audio/wav' } as const;
    const { bytes } = await signWav(testAuthor(), { origin });
    await using page = await open('#/inspect');
    await drop(page, written('child.wav', bytes));
    await page.locator('.verdict', { has: page.locator('.state.valid'), hasText: '"parent.wav"' }).waitFor();
  });

  test('calls a file unsigned that names a manifest at a remote address, and asks nothing there', async () => {
    await using page = await open('#/inspect');
    for (const { name, bytes } of filesWithXmp(xmpNaming('https://media.example/a.c2pa'))) {
      await drop(page, written(name, bytes));
      await page.getByRole('heading', { name }).waitFor();
      await page.locator('.verdict .state.none').waitFor();
    }
  });

  test('labels a development identity', async () => {
    const { signer } = await testIdentity({ leaf: { organization: 'Attestream development identity' } });
    const { bytes } = await signWav(testAuthor({ signer }));
    await using page = await open('#/inspect');
    await drop(page, written('development.wav', bytes));
    await page.locator('.verdict .state.valid').waitFor();
    await page.getByText('development identity', { exact: true }).waitFor();
  });

  test('folds a manifest of 5 MB with 500 ingredients', async () => {
    const components = Array.from({ length: 500 }, (_, index) => ({ ...plainParent, title: `take-${index}.wav` }));
    const assertions = [{ label: 'com.example.log', data: { lines: 'entry '.repeat(850_000) } }];
    const { bytes } = await signWav(testAuthor(), { components, assertions });
    assert.ok(bytes.length > 5_000_000, `${bytes.length} bytes`);
    await using page = await open('#/inspect');
    await drop(page, written('large.wav', bytes));
    await page.locator('.verdict .state.valid').waitFor();
    const rows = page.locator('.tree li:not(.more)');
    assert.equal(await rows.count(), 20);
    await page
      .getByRole('button', { name: /^Show 100 more of/ })
      .last()
      .click();
    await rows.nth(119).waitFor();
    await page.getByText('Everything that the reader reports').click();
    await page.locator('pre.raw', { hasText: 'active_manifest' }).waitFor();
    const elements = Number(await page.evaluate('document.body.querySelectorAll("*").length'));
    const characters = Number(await page.evaluate('document.body.textContent.length'));
    assert.ok(elements < 2000 && characters < 150_000, `${elements} elements, ${characters} characters`);
  });

  test('says that there is nothing to judge in what is no media, and goes on with the next file', async () => {
    const noise = Buffer.concat([Buffer.from('00000018667479706d703432', 'hex'), Buffer.alloc(5000, 0x5a)]);
    await using page = await open('#/inspect');
    for (const [name, bytes] of [
      ['minutes.txt', 'Minutes of the meeting'],
      ['empty.mp4', ''],
      ['noise.mp4', noise],
    ] as const) {
      await drop(page, written(name, bytes));
      await page.getByRole('alert').waitFor();
      assert.equal(await page.locator('.verdict, main [aria-busy]').count(), 0, name);
      await drop(page, join(SAMPLES, 'four-notes.mp3'));
      await page.locator('.verdict .state.none').waitFor();
      assert.equal(await page.getByRole('alert').count(), 0, name);
    }
  });

  test('reads a large file, and offers the service, which verifies what it can reach by a path', async () => {
    const { output } = await sign('/v2/sync/c2pa/video', join(SAMPLES, 'evening-light.mp4'));
    const large = written('large.mp4', await readFile(output));
    truncateSync(large, 5_000_000_000);
    await using page = await open('#/inspect');
    const released = Promise.withResolvers<void>();
    await page.route('**/reader-worker.js', async (route) => {
      await released.promise;
      await route.continue();
    });
    await drop(page, large);
    const form = page.getByRole('form', { name: 'Verify by the service' });
    await form.getByLabel('Path or address').fill(output);
    await page.locator('main [aria-busy]').waitFor();
    await assertAccessible(page);
    await form.getByRole('button').click();
    await page.locator('.verdict .state.trusted').waitFor();
    released.resolve();
    await form.getByLabel('Path or address').fill(join(folder, 'none.mp4'));
    await form.getByRole('button').click();
    await page.getByRole('alert').filter({ hasText: 'none.mp4' }).waitFor();
    await drop(page, output);
    await page.locator('.verdict .state.trusted').waitFor();
  });
});

/** Starts playback, muted, once the player has loaded what it needs for that: a load that comes after it would end it. */
async function play(page: Page): Promise<void> {
  await page.locator('video').evaluate(async (video: PlayedVideo) => {
    video.muted = true;
    if (video.readyState < 2)
      await new Promise((resolve) => video.addEventListener('canplay', resolve, { once: true }));
    await video.play();
  });
}

/** The part of the browser's `HTMLVideoElement` that is used here. */
interface PlayedVideo {
  muted: boolean;
  currentTime: number;
  readonly readyState: number;
  addEventListener(type: string, listener: (event: unknown) => void, options: { once: boolean }): void;
  play(): Promise<void>;
}

const secondsOf = (page: Page) => page.locator('video').evaluate((video: PlayedVideo) => video.currentTime);

/** Seeks in a video that is paused, once the player has loaded what it needs for that. */
async function seek(page: Page, seconds: number): Promise<void> {
  await page.locator('video').evaluate(async (video: PlayedVideo, to: number) => {
    if (video.readyState < 1)
      await new Promise((resolve) => video.addEventListener('loadedmetadata', resolve, { once: true }));
    video.currentTime = to;
  }, seconds);
}

describe('the player', () => {
  test('verifies every fragment while it plays', async () => {
    const { job_id: id } = await signPublication('intact');
    await using page = await open(`#/play?job=${id}&index=0`);
    await play(page);
    await page.locator('.on-screen .state.trusted').waitFor();
    for (const timeline of await page.locator('.timeline').all()) {
      await timeline.locator('rect.trusted').nth(2).waitFor({ state: 'attached' });
      assert.equal(await timeline.locator('rect:not(.trusted)').count(), 0);
    }
    assert.equal(await page.getByRole('alert').count(), 0);
    await assertAccessible(page);
  });

  test('turns red at the second at which an altered fragment begins, says which and why, and plays on', async () => {
    const { job_id: id, output } = await signPublication('altered');
    await alter(join(output, ALTERED.file));
    await using page = await open(`#/play?job=${id}&index=0`);
    const red = page.locator('rect.invalid');
    await red.waitFor({ state: 'attached' });
    await seek(page, ALTERED.seconds - 0.1);
    await page.locator('.on-screen .state.trusted').waitFor();
    await seek(page, ALTERED.seconds + 0.1);
    await page.locator('.on-screen .state.invalid').waitFor();
    const failure = page.locator('.failures li');
    assert.deepEqual(await failure.evaluate(({ dataset }: { dataset: Record<string, string> }) => ({ ...dataset })), {
      index: String(ALTERED.index),
      seconds: String(ALTERED.seconds),
      reason: 'assertion.bmffHash.mismatch',
    });
    assert.deepEqual([await red.count(), await red.getAttribute('data-index')], [1, String(ALTERED.index)]);
    assert.equal(await page.getByRole('alert').getAttribute('data-seconds'), String(ALTERED.seconds));
    await card(page).getByText('assertion.bmffHash.mismatch').first().waitFor();
    await seek(page, ALTERED.endSeconds - 0.1);
    await play(page);
    await page.locator('.on-screen .state.trusted').waitFor();
    await assertAccessible(page);
  });

  test('shows each fragment to keys, and plays from it', async () => {
    const { job_id: id } = await signPublication('by-keys');
    await using page = await open(`#/play?job=${id}&index=0`);
    await page.getByRole('button', { name: 'Verify all fragments' }).click();
    const timeline = page.getByRole('slider').first();
    await timeline.locator('rect.trusted').nth(2).waitFor({ state: 'attached' });
    await timeline.press('Home');
    await timeline.press('ArrowRight');
    assert.equal(await timeline.getAttribute('aria-valuenow'), '1');
    assert.match(
      (await timeline.getAttribute('aria-valuetext')) ?? '',
      /^Fragment 1, 00:00:02\.6 to 00:00:04\.8, .*kB: /,
    );
    await timeline.press('Enter');
    assert.equal(await secondsOf(page), ALTERED.seconds);
  });

  test('switches rendition and language, and has a timeline for each', async () => {
    const source = join(folder, 'film');
    mkdirSync(source);
    makeFilm(source, 'film-180.mp4');
    makeFilm(source, 'film-90.mp4', '160x90');
    const { job_id: id } = await sign('/v2/sync/c2pa/package', source, { segment_duration: 2 });
    await using page = await open('');
    // The first fragment of the picture comes, and the others when the resolution is chosen: what is loaded is not loaded again.
    const chosen = Promise.withResolvers<void>();
    let fragments = 0;
    await page.route(/\/video\/.*\.m4s/, async (route) => {
      fragments += 1;
      if (fragments > 1) await chosen.promise;
      await route.continue();
    });
    await page.goto(`${service.base}/#/play?job=${id}&index=0`);
    await page.locator('.timeline strong').nth(3).waitFor();
    const names = await page.locator('.timeline strong').allTextContents();
    const timeline = (name: RegExp) => page.locator('.timeline', { hasText: name });
    await timeline(/Audio German/).waitFor();
    assert.equal(await page.locator('.timeline').count(), 4, names.join());
    assert.equal(
      await timeline(/Audio German/)
        .locator('rect.trusted')
        .count(),
      0,
    );
    await page.getByLabel('Language').selectOption('German');
    await timeline(/Audio German/)
      .locator('rect.trusted')
      .first()
      .waitFor({ state: 'attached' });
    await page.getByLabel('Resolution').selectOption('90p');
    chosen.resolve();
    await play(page);
    await timeline(/Video 90p/)
      .locator('rect.trusted')
      .first()
      .waitFor({ state: 'attached' });
    await assertAccessible(page);
  });

  test('verifies a publication and a file of a codec that the browser lacks, and says so', async () => {
    const source = join(folder, 'hevc');
    mkdirSync(source);
    const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=12:d=2'];
    ffmpeg(source, picture, '-c:v libx265 -preset ultrafast -x265-params log-level=none -tag:v hvc1 -g 12 hevc.mp4');
    const { job_id: publication } = await sign('/v2/sync/c2pa/package', source, { segment_duration: 1 });
    {
      await using page = await open(`#/play?job=${publication}&index=0`);
      await page.getByRole('alert').waitFor();
      await page.locator('.verdict .state.trusted').waitFor();
      await page.locator('rect.trusted').first().waitFor({ state: 'attached' });
      assert.equal(await page.locator('main [aria-busy]').count(), 0);
    }
    const { job_id: file } = await sign('/v2/sync/c2pa/video', join(source, 'hevc.mp4'));
    await using page = await open(`#/play?job=${file}&index=0`);
    await page.getByRole('alert').waitFor();
    await page.locator('.verdict .state.trusted').waitFor();
  });

  test('has the service verify an output that is too large to be fetched', async () => {
    const { job_id: id } = await sign('/v2/sync/c2pa/video', join(SAMPLES, 'evening-light.mp4'));
    await using page = await open('');
    await page.route('**/outputs/0/*.mp4', (route) =>
      route.fulfill({ headers: { 'content-length': '5000000000', 'content-type': 'video/mp4' } }),
    );
    const verified = page.waitForRequest((asked) => asked.url().endsWith('/v2/verify'));
    await page.evaluate(`location.hash = '#/play?job=${id}&index=0'`);
    await verified;
    await page.locator('.verdict .state.trusted').waitFor();
  });
});

test('npm run play shows a publication without a service', async () => {
  const { output } = await signPublication('alone');
  const program = spawn(process.execPath, [PLAY, output], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [line] = (await once(program.stdout, 'data')) as [Buffer];
    const [, base = '', path = ''] = /Open (\S+?)\/(#\S+)/.exec(line.toString()) ?? [];
    await using page = await openPage(browser, base, path);
    await play(page);
    await page.locator('.on-screen .state.valid').waitFor();
  } finally {
    program.kill();
  }
});
