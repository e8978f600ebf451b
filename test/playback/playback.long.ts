import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { launchBrowser, takePage } from '../console/browser.ts';
import {
  makeFfmpegByteRanges,
  makeFilm,
  makeShaka,
  makeShakaByteRanges,
} from '../support/publications/make-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type MediaServer, serveMedia } from './media-server.ts';

/** The film has six seconds; sound may end a few hundredths earlier. */
const FILM_SECONDS = 5.9;
/** So far playback has to get for the test to believe in it. */
const PLAYED_SECONDS = 2;
const PLAYBACK_TIMEOUT_MS = 600_000;

const folder = temporaryFolder();
const film = makeFilm(folder);
const separate = { playlist_pattern: '*.{m3u8,mpd}', init_pattern: '*init*', frag_pattern: '*.m4s' };
const singleFiles = { ...separate, init_pattern: '*.mp4', frag_pattern: '*.mp4' };

const publications = [
  { name: 'shaka', make: makeShaka, params: separate, hls: 'master.m3u8', dash: 'manifest.mpd' },
  { name: 'shaka-ranges', make: makeShakaByteRanges, params: singleFiles, hls: 'master.m3u8', dash: 'manifest.mpd' },
  { name: 'ffmpeg-ranges', make: makeFfmpegByteRanges, params: singleFiles, hls: 'master.m3u8', dash: null },
] as const;

let browser: Browser;
let media: MediaServer;
let service: RunningService;

before(async () => {
  service = await startService({ folder: join(folder, 'service') });
  media = await serveMedia(join(folder, 'service', 'output'));
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await media?.close();
  await service?.stop();
});

describe('A signed publication', () => {
  for (const { name, make, params, hls, dash } of publications) {
    test(`made by ${name} plays in browsers`, async () => {
      const job = await service.runSync('/v2/sync/c2pa/fragmented', {
        inputs: [{ type: 'local_folder_path', path: make(film, join(folder, name)) }],
        params,
      });
      assert.equal(job.status, 'succeeded', job.results[0]?.error);
      await assertPlays('hls.html', `${name}/${hls}`);
      if (dash !== null) await assertPlays('shaka.html', `${name}/${dash}`);
      await assertPlays('shaka.html', `${name}/${hls}`);
    });
  }
});

/** State that a player's page reports. */
interface PlayerState {
  readonly errors: readonly string[];
  readonly playedSeconds: number;
  readonly bufferedSeconds: number;
}

/** A player plays what an address names, without an error, and fetches it to its end. */
async function assertPlays(player: string, playlist: string): Promise<void> {
  await using page = await takePage(browser);
  await page.goto(`${media.base}/${player}?source=/media/${playlist}`);
  const { errors, playedSeconds, bufferedSeconds } = await untilPlayed(page);
  assert.deepEqual(errors, [], `${player} plays ${playlist}`);
  assert.ok(playedSeconds >= PLAYED_SECONDS, `${player} played ${playedSeconds} s of ${playlist}`);
  assert.ok(bufferedSeconds >= FILM_SECONDS, `${player} fetched ${bufferedSeconds} s of ${playlist}`);
}

/** Waits until enough was played and all was fetched, or something went wrong, and returns how it stands then. */
async function untilPlayed(page: Page): Promise<PlayerState> {
  const isDone = ([played, fetched]: readonly [number, number]): boolean => {
    const { errors, playedSeconds, bufferedSeconds } = (globalThis as unknown as { state(): PlayerState }).state();
    return errors.length > 0 || (playedSeconds >= played && bufferedSeconds >= fetched);
  };
  const wanted = [PLAYED_SECONDS, FILM_SECONDS] as const;
  // The state tells which condition was not met in time.
  await page.waitForFunction(isDone, wanted, { timeout: PLAYBACK_TIMEOUT_MS, polling: 50 }).catch(() => undefined);
  return await page.evaluate(() => (globalThis as unknown as { state(): PlayerState }).state());
}
