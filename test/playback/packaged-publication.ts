import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { launchBrowser, takePage } from '../console/browser.ts';
import { makeFilm, SRT, turnFilm } from '../support/media/make-film.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type MediaServer, serveMedia } from './media-server.ts';

const PLAYBACK_TIMEOUT_MS = 600_000;

const folder = temporaryFolder();
let browser: Browser;
let media: MediaServer;
let service: RunningService;

before(async () => {
  service = await startService({ folder: join(folder, 'service') });
  const outputs = join(folder, 'service', 'output');
  media = await serveMedia(outputs);
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await media?.close();
  await service?.stop();
});

async function run(path: string, body: unknown): Promise<void> {
  const job = await service.runSync(path, body);
  assert.equal(job.status, 'succeeded', job.results[0]?.error);
}

/** Tests how players play a film in two languages that was packaged. */
export function testPackagedPublication(kind: 'plain' | 'signed'): void {
  describe('A packaged publication', () => {
    before(async () => {
      const source = join(folder, 'film');
      mkdirSync(source);
      makeFilm(source, 'film-720.mp4', '1280x720');
      makeFilm(source, 'film-180.mp4', '320x180');
      writeFileSync(join(source, 'film.fr.srt'), SRT);
      const inputs = [{ type: 'local_folder_path', path: source }];
      const output = { type: 'local', name: kind };
      if (kind === 'plain') await run('/v2/sync/package', { inputs, output });
      else await run('/v2/sync/c2pa/package', { inputs, output, params: {} });
    });
    test(`plays ${kind} by HLS in hls.js, where another language and subtitles are chosen`, async () => {
      await using page = await open(`hls.html?source=/media/${kind}/film/master.m3u8`);
      await assertLanguages(page, 'hls.audioTracks.map(({ lang }) => lang)');
      assert.ok(!page.asked.some(isGerman), 'German is not fetched before it is chosen');
      await page.evaluate("hls.audioTrack = hls.audioTracks.findIndex(({ lang }) => lang === 'de')");
      if (!page.asked.some(isGerman)) await page.waitForRequest((request) => isGerman(request.url()));
      await page.evaluate(
        "hls.subtitleDisplay = true, hls.subtitleTrack = hls.subtitleTracks.findIndex(({ lang }) => lang === 'fr')",
      );
      await assertPlaysWithFrench(page);
    });

    // Chosen at its start: where sound is changed later, Shaka Player 5.2.12 now and then clears the picture for good.
    for (const [format, playlist] of [
      ['DASH', 'manifest.mpd'],
      ['HLS', 'master.m3u8'],
    ]) {
      test(`plays ${kind} by ${format} in Shaka Player, in the language and with the subtitles it is told`, async () => {
        await using page = await open(`shaka.html?source=/media/${kind}/film/${playlist}&sound=de&text=fr`);
        await assertLanguages(page, 'player.getAudioTracks().map(({ language }) => language)');
        assert.ok(page.asked.some(isGerman));
        await assertPlaysWithFrench(page);
      });
    }
  });
}

/** Tests how players show a film that is to be turned. */
export function testTurnedFilm(): void {
  describe('A packaged film whose picture is to be turned', () => {
    before(async () => {
      const turned = join(folder, 'turned');
      mkdirSync(turned);
      turnFilm(makeFilm(turned));
      await run('/v2/sync/c2pa/package', { inputs: [{ type: 'local_folder_path', path: turned }], params: {} });
    });
    for (const [page, playlist] of [
      ['hls.html', 'master.m3u8'],
      ['shaka.html', 'manifest.mpd'],
    ]) {
      test(`is upright in ${page}`, async () => {
        await using tab = await open(`${page}?source=/media/turned/${playlist}`);
        assert.deepEqual(await tab.evaluate('[video.videoWidth, video.videoHeight]'), [180, 320]);
      });
    }
  });
}

const isGerman = (url: string): boolean => url.includes('/audio/de_aac/0');

/** Opens a player, which plays, and keeps what it asks for. The film begins again at its end, however late languages are chosen. */
async function open(path: string): Promise<Page & AsyncDisposable & { readonly asked: readonly string[] }> {
  const page = await takePage(browser);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(`${media.base}/${path}`);
  await page.evaluate('video.loop = true');
  await until(page, 'video.currentTime > 0.5');
  return Object.assign(page, { asked });
}

async function assertLanguages(page: Page, languages: string): Promise<void> {
  assert.deepEqual(((await page.evaluate(languages)) as string[]).sort(), ['de', 'en']);
}

async function assertPlaysWithFrench(page: Page): Promise<void> {
  const cues = '[...video.textTracks].flatMap(({ cues }) => [...(cues ?? [])])';
  await until(page, `${cues}.some(({ text }) => /evening/.test(text))`);
  await until(page, 'video.currentTime > 3');
}

/** Waits until an expression holds. Fails as soon as the player reports an error. */
async function until(page: Page, expression: string): Promise<void> {
  await page
    .waitForFunction(`errors.length > 0 || (${expression})`, undefined, { timeout: PLAYBACK_TIMEOUT_MS, polling: 50 })
    .catch(async () => {
      const state = JSON.stringify(await page.evaluate('({ errors, at: video.currentTime })'));
      assert.fail(`${expression} does not come to hold: ${state}`);
    });
  assert.deepEqual(await page.evaluate('errors'), []);
}
