import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { launchBrowser, takePage } from '../console/browser.ts';
import { makeFilm, SRT, turnFilm } from '../support/media/make-film.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type MediaServer, serveMedia } from './media-server.ts';

const PLAYBACK_TIMEOUT_MS = 600_000;
/** Shaka Player once stood still for good when the sound was changed, and played the same media whenever it was tried again. */
const PLAYS_TRIED = 2;

const folder = temporaryFolder();
let browser: Browser;
let media: MediaServer;
let service: RunningService;

before(async () => {
  const source = join(folder, 'film');
  mkdirSync(source);
  makeFilm(source, 'film-720.mp4', '1280x720');
  makeFilm(source, 'film-180.mp4', '320x180');
  writeFileSync(join(source, 'film.fr.srt'), SRT);
  service = await startService({ folder: join(folder, 'service') });
  const outputs = join(folder, 'service', 'output');
  await run('/v2/sync/package', {
    inputs: [{ type: 'local_folder_path', path: source }],
    output: { type: 'local', name: 'plain' },
  });
  await run('/v2/sync/c2pa/package', {
    inputs: [{ type: 'local_folder_path', path: source }],
    output: { type: 'local', name: 'signed' },
    params: {},
  });
  const turned = join(folder, 'turned');
  mkdirSync(turned);
  turnFilm(makeFilm(turned));
  await run('/v2/sync/c2pa/package', { inputs: [{ type: 'local_folder_path', path: turned }], params: {} });
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

/** Actions of a player, as expressions that are evaluated in its page. */
interface Player {
  readonly page: string;
  readonly languages: string;
  readonly chooseGerman: string;
  readonly showFrench: string;
}

const HLS: Player = {
  page: 'hls.html',
  languages: 'hls.audioTracks.map(({ lang }) => lang)',
  chooseGerman: "hls.audioTrack = hls.audioTracks.findIndex(({ lang }) => lang === 'de')",
  showFrench:
    "hls.subtitleDisplay = true, hls.subtitleTrack = hls.subtitleTracks.findIndex(({ lang }) => lang === 'fr')",
};
const SHAKA: Player = {
  page: 'shaka.html',
  languages: 'player.getAudioTracks().map(({ language }) => language)',
  chooseGerman: "player.selectAudioTrack(player.getAudioTracks().find(({ language }) => language === 'de'))",
  showFrench: "player.selectTextTrack(player.getTextTracks().find(({ language }) => language === 'fr'))",
};

describe('A packaged publication', () => {
  for (const kind of ['plain', 'signed']) {
    test(`plays ${kind} by HLS in hls.js, in another language and with subtitles`, async (t) => {
      await assertPlays(t, HLS, `${kind}/film/master.m3u8`);
    });
    test(`plays ${kind} by DASH in Shaka Player, in another language and with subtitles`, async (t) => {
      await assertPlays(t, SHAKA, `${kind}/film/manifest.mpd`);
    });
    test(`plays ${kind} by HLS in Shaka Player, in another language and with subtitles`, async (t) => {
      // Over HLS it keeps subtitles back until the next segment of video comes: chosen late, there is none left here.
      await assertPlays(t, SHAKA, `${kind}/film/master.m3u8&text=fr`);
    });
  }
});

describe('A packaged film whose picture is to be turned', () => {
  for (const [page, playlist] of [
    ['hls.html', 'master.m3u8'],
    ['shaka.html', 'manifest.mpd'],
  ]) {
    test(`is upright in ${page}`, async () => {
      await using tab = await takePage(browser);
      await tab.goto(`${media.base}/${page}?source=/media/turned/${playlist}`);
      await until(tab, 'video.currentTime > 0.5');
      assert.deepEqual(await tab.evaluate('[video.videoWidth, video.videoHeight]'), [180, 320]);
    });
  }
});

/** A player that stands still is given a fresh page, and that is told: what is wrong with the media is wrong there as well. */
async function assertPlays(t: TestContext, player: Player, playlist: string): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await playOnce(player, playlist);
    } catch (error) {
      if (!(error instanceof StoodStill) || tried === PLAYS_TRIED) throw error;
      t.diagnostic(error.message);
    }
  }
}

/** It plays, gives its languages, fetches the sound of another one when that is chosen, and shows subtitles. */
async function playOnce(player: Player, playlist: string): Promise<void> {
  await using page = await takePage(browser);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(`${media.base}/${player.page}?source=/media/${playlist}`);
  // It begins again at its end, however late languages are chosen.
  await page.evaluate('video.loop = true');
  await until(page, 'video.currentTime > 0.5');
  assert.deepEqual(((await page.evaluate(player.languages)) as string[]).sort(), ['de', 'en']);
  assert.ok(!asked.some((url) => url.includes('/audio/de_aac/0')), 'German is not fetched before it is chosen');
  await page.evaluate(`void (${player.chooseGerman})`);
  const isGerman = (url: string): boolean => url.includes('/audio/de_aac/0');
  if (!asked.some(isGerman)) await page.waitForRequest((request) => isGerman(request.url()));
  await assertShowsFrench(page, player);
  await until(page, 'video.currentTime > 3');
}

async function assertShowsFrench(page: Page, { showFrench }: Player): Promise<void> {
  await page.evaluate(`void (${showFrench})`);
  const cues = '[...video.textTracks].flatMap(({ cues }) => [...(cues ?? [])])';
  await until(page, `${cues}.some(({ text }) => /evening/.test(text))`);
}

class StoodStill extends Error {}

/** Waits until an expression holds. Fails as soon as the player reports an error. */
async function until(page: Page, expression: string): Promise<void> {
  await page
    .waitForFunction(`errors.length > 0 || (${expression})`, undefined, { timeout: PLAYBACK_TIMEOUT_MS, polling: 50 })
    .catch(async () => {
      const state = JSON.stringify(await page.evaluate('({ errors, at: video.currentTime })'));
      throw new StoodStill(`${expression} does not come to hold: ${state}`);
    });
  assert.deepEqual(await page.evaluate('errors'), []);
}
