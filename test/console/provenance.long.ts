import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, truncateSync } from 'node:fs';
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { filesWithXmp, xmpNaming } from '../provenance/files-with-xmp.ts';
import { plainParent, signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { ffmpeg, makeFilm } from '../support/media/make-film.ts';
import { assertAccessible, openPage } from './browser.ts';
import {
  ALTERED,
  alter,
  assertSaid,
  card,
  drop,
  otherwise,
  ProvenancePages,
  play,
  reordered,
  SAMPLES,
  SUBTITLED,
  secondsOf,
} from './provenance-pages.ts';

const PROGRAM = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

let pages: ProvenancePages;
before(async () => {
  pages = await ProvenancePages.start();
});
after(() => pages.stop());

describe('the page that inspects', () => {
  test('tells what of a publication is not what was signed, and where', async () => {
    const { job_id: id, output } = await pages.signPublication('inspected');
    await alter(join(output, ALTERED.file));
    await using page = await pages.open(`#/inspect?job=${id}&index=0`);
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

  test('names in the verdict an ingredient that was altered before it was added', async () => {
    const path = pages.written('parent.wav', (await signWav(testAuthor())).bytes);
    await alter(path);
    const origin = { kind: 'file', path, title: 'parent.wav', mediaType: 'audio/wav' } as const;
    const { bytes } = await signWav(testAuthor(), { origin });
    await using page = await pages.open('#/inspect');
    await drop(page, pages.written('child.wav', bytes));
    await page.locator('.verdict', { has: page.locator('.state.valid'), hasText: '"parent.wav"' }).waitFor();
  });

  test('calls a file unsigned that names a manifest at a remote address, and asks nothing there', async () => {
    await using page = await pages.open('#/inspect');
    for (const { name, bytes } of filesWithXmp(xmpNaming('https://media.example/a.c2pa'))) {
      await drop(page, pages.written(name, bytes));
      await page.getByRole('heading', { name }).waitFor();
      await page.locator('.verdict .state.none').waitFor();
    }
  });

  test('labels a development identity', async () => {
    const { signer } = await testIdentity({ leaf: { organization: 'Attestream development identity' } });
    const { bytes } = await signWav(testAuthor({ signer }));
    await using page = await pages.open('#/inspect');
    await drop(page, pages.written('development.wav', bytes));
    await page.locator('.verdict .state.valid').waitFor();
    await page.getByText('development identity', { exact: true }).waitFor();
  });

  test('folds a manifest of 5 MB with 500 ingredients', async () => {
    const components = Array.from({ length: 500 }, (_, index) => ({ ...plainParent, title: `take-${index}.wav` }));
    const assertions = [{ label: 'com.example.log', data: { lines: 'entry '.repeat(850_000) } }];
    const { bytes } = await signWav(testAuthor(), { components, assertions });
    assert.ok(bytes.length > 5_000_000, `${bytes.length} bytes`);
    await using page = await pages.open('#/inspect');
    await drop(page, pages.written('large.wav', bytes));
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
    await using page = await pages.open('#/inspect');
    for (const [name, bytes] of [
      ['minutes.txt', 'Minutes of the meeting'],
      ['empty.mp4', ''],
      ['noise.mp4', noise],
    ] as const) {
      await drop(page, pages.written(name, bytes));
      await page.getByRole('alert').waitFor();
      assert.equal(await page.locator('.verdict, main [aria-busy]').count(), 0, name);
      await drop(page, join(SAMPLES, 'four-notes.mp3'));
      await page.locator('.verdict .state.none').waitFor();
      assert.equal(await page.getByRole('alert').count(), 0, name);
    }
  });

  test('reads a large file, and offers the service, which verifies what it can reach by a path', async () => {
    const { output } = await pages.sign('/v2/sync/c2pa/video', join(SAMPLES, 'evening-light.mp4'));
    const large = pages.written('large.mp4', await readFile(output));
    truncateSync(large, 5_000_000_000);
    await using page = await pages.open('#/inspect');
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
    await form.getByLabel('Path or address').fill(join(pages.folder, 'none.mp4'));
    await form.getByRole('button').click();
    await page.getByRole('alert').filter({ hasText: 'none.mp4' }).waitFor();
    await drop(page, output);
    await page.locator('.verdict .state.trusted').waitFor();
  });
});

describe('the player', () => {
  describe('of a publication whose playlists are signed', () => {
    let job = '';
    let output = '';
    before(async () => {
      ({ job_id: job, output } = await pages.signPublication('subtitled', SUBTITLED));
    });
    const open = (entry = 'master.m3u8') => pages.open(`#/play?job=${job}&index=0&path=${entry}`);

    for (const { what, ...said } of [
      {
        what: 'a language',
        file: 'master.m3u8',
        change: (text: string) => text.replace('LANGUAGE="en"', 'LANGUAGE="de"'),
        sentence: 'Not as signed: "master.m3u8" was changed.',
        timelines: [],
      },
      {
        what: 'the text of subtitles',
        file: 'text.vtt',
        change: otherwise,
        sentence: 'Not as signed: files that "text.m3u8" names were changed.',
        timelines: [],
      },
    ]) {
      test(`says it from the start where ${what} was changed`, () => assertSaid(pages, job, output, said));
    }

    test('names an entry that was added', async () => {
      const path = join(output, 'other.m3u8');
      await writeFile(path, SUBTITLED['master.m3u8'].replace(/.*SUBTITLES,.*\n/, '').replace(',SUBTITLES="t"', ''));
      await using page = await open('other.m3u8');
      await page.getByRole('alert').getByText('Not as signed: "other.m3u8" was added.').waitFor();
      await rm(path);
    });

    test('says that a trailer plays another part of the film, when all that it names was verified', async () => {
      const film = await readFile(join(SAMPLES, 'publication/media_0.m3u8'), 'utf8');
      const trailer = film.replace(/#EXTINF:2\.28[\s\S]*(?=#EXT-X-ENDLIST)/, '');
      const { job_id: id, output: signed } = await pages.signPublication('trailer', { 'trailer.m3u8': trailer });
      const open = () => pages.open(`#/play?job=${id}&index=0&path=trailer.m3u8`);
      {
        await using page = await open();
        await page.locator('rect.trusted').waitFor({ state: 'attached' });
        await card(page).getByText('Unchanged: media, playlists, text and pictures are as they were signed.').waitFor();
      }
      await copyFile(join(signed, 'fragment-0-2.m4s'), join(signed, 'fragment-0-1.m4s'));
      await using page = await open();
      await page.getByRole('alert').getByText('Not as signed: files that "trailer.m3u8" names were changed.').waitFor();
    });

    for (const [file, change, sentence] of [
      ['media_0.m3u8', reordered, '"media_0.m3u8" was changed.'],
      ['text.vtt', otherwise, 'files that "text.m3u8" names were changed.'],
    ] as const) {
      test(`notices that ${file} is another one when the player loads it again`, async () => {
        await using page = await pages.open('');
        let loads = 0;
        await page.route(`**/${file}`, async (route) => {
          loads += 1;
          const response = await route.fetch({ timeout: 0 });
          const body = await response.text();
          await route.fulfill({ response, body: loads === 1 ? body : change(body) });
        });
        await page.goto(`${pages.base}/#/play?job=${job}&index=0&path=master.m3u8`);
        await page.getByRole('alert').getByText(`Not as signed: ${sentence}`).waitFor();
        assert.equal(await page.locator('rect.changed').count(), file === 'text.vtt' ? 0 : 1);
        assert.ok(loads > 1);
      });
    }
  });

  test('verifies every fragment while it plays', async () => {
    const { job_id: id } = await pages.signPublication('intact');
    await using page = await pages.open(`#/play?job=${id}&index=0`);
    await play(page);
    await page.locator('.on-screen .state.trusted').waitFor();
    for (const timeline of await page.locator('.timeline').all()) {
      await timeline.locator('rect.trusted').nth(2).waitFor({ state: 'attached' });
      assert.equal(await timeline.locator('rect:not(.trusted)').count(), 0);
    }
    assert.equal(await page.getByRole('alert').count(), 0);
    await assertAccessible(page);
  });

  test('shows each fragment to keys, and plays from it', async () => {
    const { job_id: id } = await pages.signPublication('by-keys');
    await using page = await pages.open('');
    // The others come when the button was pressed: it goes once the player has loaded, and so verified, all of them.
    const pressed = Promise.withResolvers<void>();
    await page.route(/fragment-\d-[23]\.m4s/, async (route) => {
      await pressed.promise;
      await route.continue();
    });
    await page.goto(`${pages.base}/#/play?job=${id}&index=0`);
    await page.getByRole('button', { name: 'Verify all fragments' }).click();
    pressed.resolve();
    const timeline = page.getByRole('slider').first();
    await timeline.locator('rect.trusted').nth(2).waitFor({ state: 'attached' });
    // Elements below the pointer move when the button goes: a timeline there would take that for a choice.
    await page.mouse.move(0, 0);
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
    const source = join(pages.folder, 'film');
    mkdirSync(source);
    makeFilm(source, 'film-180.mp4');
    makeFilm(source, 'film-90.mp4', '160x90');
    const { job_id: id } = await pages.sign('/v2/sync/c2pa/package', source, { segment_duration: 2 });
    await using page = await pages.open('');
    // The first fragments of the picture come, and the others when the resolution is chosen: what is loaded is not loaded again.
    const chosen = Promise.withResolvers<void>();
    await page.route(/\/video\/.*\/(?!00001)\d+\.m4s/, async (route) => {
      await chosen.promise;
      await route.continue();
    });
    await page.goto(`${pages.base}/#/play?job=${id}&index=0`);
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
    await page.locator('.verdict', { hasText: 'playlists, text and pictures are as they were signed' }).waitFor();
    await assertAccessible(page);
  });

  test('verifies a publication and a file of a codec that the browser lacks, and says so', async () => {
    const source = join(pages.folder, 'hevc');
    mkdirSync(source);
    const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=12:d=2'];
    ffmpeg(source, picture, '-c:v libx265 -preset ultrafast -x265-params log-level=none -tag:v hvc1 -g 12 hevc.mp4');
    const { job_id: publication } = await pages.sign('/v2/sync/c2pa/package', source, { segment_duration: 1 });
    {
      await using page = await pages.open(`#/play?job=${publication}&index=0`);
      await page.getByRole('alert').waitFor();
      await page.locator('.verdict .state.trusted').waitFor();
      await page.locator('rect.trusted').first().waitFor({ state: 'attached' });
      assert.equal(await page.locator('main [aria-busy]').count(), 0);
    }
    const { job_id: file } = await pages.sign('/v2/sync/c2pa/video', join(source, 'hevc.mp4'));
    await using page = await pages.open(`#/play?job=${file}&index=0`);
    await page.getByRole('alert').waitFor();
    await page.locator('.verdict .state.trusted').waitFor();
  });

  test('has the service verify an output that is too large to be fetched', async () => {
    const { job_id: id } = await pages.sign('/v2/sync/c2pa/video', join(SAMPLES, 'evening-light.mp4'));
    await using page = await pages.open('');
    await page.route('**/outputs/0/*.mp4', (route) =>
      route.fulfill({ headers: { 'content-length': '5000000000', 'content-type': 'video/mp4' } }),
    );
    const verified = page.waitForRequest((asked) => asked.url().endsWith('/v2/verify'));
    await page.evaluate(`location.hash = '#/play?job=${id}&index=0'`);
    await verified;
    await page.locator('.verdict .state.trusted').waitFor();
  });
});

test('the command play shows a publication without a service', async () => {
  const { output } = await pages.signPublication('alone');
  const program = spawn(process.execPath, [PROGRAM, 'play', output], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [line] = (await once(program.stdout, 'data')) as [Buffer];
    const [, base = '', path = ''] = /(http\S+?)\/(#\S+)/.exec(line.toString()) ?? [];
    await using page = await openPage(pages.browser, base, path);
    await play(page);
    await page.locator('.on-screen .state.valid').waitFor();
  } finally {
    program.kill();
  }
});
