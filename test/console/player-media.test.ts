import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { makeFilm, makeShaka } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { ALTERED, alter, card, ProvenancePages, play, SAMPLES, SUBTITLED, seek } from './provenance-pages.ts';

// Media beside the signed ones, media that do not play, and the words that the player has for them.

const sample = (name: string) => readFileSync(join(SAMPLES, 'publication', name));
const addressOf = (job: string) => `#/play?job=${job}&index=0&path=master.m3u8`;
const say = (page: Page, sentence: string) => page.getByRole('alert').getByText(sentence).waitFor();

let pages: ProvenancePages;
before(async () => {
  pages = await ProvenancePages.start();
});
after(() => pages?.stop());

test('the player calls unsigned media not intact that come in place of signed ones when it loads them', async () => {
  const { job_id: job } = await pages.signPublication('replaced', SUBTITLED);
  await using page = await pages.open('');
  // The page itself, which looks for the manifest before playback, gets the signed ones.
  await page.route(/(?:init|fragment)-0/, async (route) => {
    const name = new URL(route.request().url()).pathname.split('/').at(-1) as string;
    if (route.request().resourceType() === 'xhr') await route.fulfill({ body: sample(name) });
    else await route.continue();
  });
  await page.goto(`${pages.base}/${addressOf(job)}`);
  await say(page, 'From 00:00:00 on, this is not what was signed: fragment 0 of Video 360p, 144 kbit/s.');
  await page.locator('.on-screen .state.invalid').waitFor();
  await page.locator('rect.invalid').first().waitFor({ state: 'attached' });
});

describe('the player compares playlists with the manifest that signs them', () => {
  const lead = (track: number) =>
    `#EXT-X-MAP:URI="lead-${track}.mp4"\n#EXTINF:2.6,\nlead-${track}.m4s\n#EXT-X-DISCONTINUITY\n`;
  for (const [kind, leadOf] of [
    [
      'nobody signed',
      async () =>
        Object.fromEntries(
          [0, 1].flatMap((track) => [
            [`lead-${track}.mp4`, sample(`init-${track}.mp4`)],
            [`lead-${track}.m4s`, sample(`fragment-${track}-1.m4s`)],
          ]),
        ),
    ],
    ['somebody signed who signs no playlists', leadOfOthers],
  ] as const) {
    test(`where media come first that ${kind}`, async () => {
      const { job_id: job, output } = await pages.signPublication(`lead of ${kind}`);
      for (const [name, bytes] of Object.entries(await leadOf())) await writeFile(join(output, name), bytes);
      for (const track of [0, 1]) {
        const path = join(output, `media_${track}.m3u8`);
        const text = await readFile(path, 'utf8');
        await writeFile(path, text.replace('#EXT-X-MAP', `${lead(track)}#EXT-X-MAP`));
      }
      await using page = await pages.open(addressOf(job));
      await say(page, 'Not as signed: ');
      await page.locator('.on-screen .state:is(.invalid, .none)').waitFor();
      await page.locator('rect.changed').first().waitFor({ state: 'attached' });
    });
  }
});

test('the player compares playlists with a manifest that comes once it plays, and calls unsigned media beside that not intact', async () => {
  const { job_id: job } = await pages.signPublication('late manifest');
  await using page = await pages.open('');
  await page.route(/(?:init|fragment)-\d/, async (route) => {
    const name = new URL(route.request().url()).pathname.split('/').at(-1) as string;
    const isSigned = route.request().resourceType() === 'xhr' && /^(?:init|fragment)-1\b/.test(name);
    if (isSigned) await route.continue();
    else await route.fulfill({ body: sample(name) });
  });
  await page.goto(`${pages.base}/${addressOf(job)}`);
  await say(page, 'Not as signed: ');
  await say(page, 'From 00:00:00 on, this is not what was signed: fragment 0 of Video 360p');
});

test('the player compares playlists of key frames and of pictures, and the pictures', async () => {
  const main = SUBTITLED['master.m3u8'];
  const infos = ['I-FRAME-STREAM-INF:BANDWIDTH=1000,URI="keys.m3u8"', 'IMAGE-STREAM-INF:BANDWIDTH=10,URI="tiles.m3u8"'];
  const tiles = '#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:6\n#EXT-X-IMAGES-ONLY\n#EXTINF:6,\n';
  const keys = sample('media_0.m3u8').toString().replace('#EXT-X-MAP', '#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP');
  const { job_id: job, output } = await pages.signPublication('beside', {
    ...SUBTITLED,
    'master.m3u8': `${main}${infos.map((info) => `#EXT-X-${info}\n`).join('')}`,
    'tiles.m3u8': `${tiles}tile.jpg\n#EXT-X-ENDLIST\n`,
    'tile.jpg': 'a picture',
    'keys.m3u8': keys,
  });
  {
    await using page = await pages.open(addressOf(job));
    await card(page).getByText('Unchanged: media, playlists, text and pictures are as they were signed.').waitFor();
  }
  await writeFile(join(output, 'tile.jpg'), 'an other');
  {
    await using page = await pages.open(addressOf(job));
    await say(page, 'Not as signed: files that "tiles.m3u8" names were changed.');
  }
  await writeFile(join(output, 'keys.m3u8'), keys.replace('#EXTINF', '#EXT-X-GAP\n#EXTINF'));
  await using page = await pages.open(addressOf(job));
  await say(page, 'Not as signed: "keys.m3u8" was changed. Further differences: 1.');
});

/** Returns media as another signer signs them, who has no word for playlists. */
async function leadOfOthers(): Promise<Record<string, Uint8Array>> {
  const names = [0, 1].flatMap((track) => [`init-${track}.mp4`, `fragment-${track}-1.m4s`]);
  const renditions = [0, 1].map((track) => ({
    init: { path: `init-${track}.mp4`, range: null },
    fragments: [{ path: `fragment-${track}-1.m4s`, range: null }],
  }));
  const signed = await signAsOthers(Object.fromEntries(names.map((name) => [name, sample(name)])), renditions, {});
  return Object.fromEntries(
    Object.entries(signed).map(([name, bytes]) => [
      name.replace(/^init-|^fragment-/, 'lead-').replace('-1.m4s', '.m4s'),
      bytes,
    ]),
  );
}

test('the player says of intact media that others are not where a fragment was altered', async () => {
  const { job_id: job, output } = await pages.signPublication('in part');
  await alter(join(output, ALTERED.file));
  await using page = await pages.open(addressOf(job));
  await page.locator('rect.invalid').waitFor({ state: 'attached' });
  await seek(page, ALTERED.seconds - 0.1);
  await card(page)
    .getByText('This part is as it was signed, and others are not. Signed by "Attestream tests"')
    .waitFor();
});

describe('where nothing plays, the player says why, verifies, and offers no choice:', () => {
  for (const lead of ['0', '2']) {
    test(`of encrypted media behind ${lead} s that are not`, async () => {
      const keys = ['--enable_raw_key_encryption', '--protection_scheme', 'cbcs', '--protection_systems', ''];
      const key = 'label=:key_id=0123456789abcdef0123456789abcdef:key=00112233445566778899aabbccddeeff';
      const options = [...keys, '--keys', key, '--clear_lead', lead];
      const input = makeShaka(makeFilm(pages.folder), join(pages.folder, `encrypted-${lead}`), options);
      const { job_id: job } = await pages.sign('/v2/sync/c2pa/fragmented', input, {
        playlist_pattern: '**/*.{m3u8,mpd}',
        init_pattern: '**/init.mp4',
        frag_pattern: '**/[0-9]*.m4s',
      });
      await using page = await pages.open(addressOf(job));
      await say(page, 'This publication is encrypted, and the page has no keys, so nothing plays.');
      await page.locator('rect.trusted').first().waitFor({ state: 'attached' });
    });
  }

  test('of what the browser cannot decode', async () => {
    const { job_id: job } = await pages.signPublication('undecodable', TWO_TRACKS);
    await using page = await pages.open('');
    await page.evaluate(
      "SourceBuffer.prototype.appendBuffer = () => { throw new DOMException('', 'InvalidStateError') }",
    );
    await page.evaluate(`location.hash = '${addressOf(job)}'`);
    await say(page, 'This browser cannot decode the codec of this publication');
    await page.locator('rect.trusted').first().waitFor({ state: 'attached' });
    assert.equal(await page.locator('.player-controls select').count(), 0);
  });
});

/** Playlists with a commentary. */
const TWO_TRACKS = {
  'master.m3u8': SUBTITLED['master.m3u8']
    .replace(/#EXT-X-MEDIA:TYPE=SUB.*\n/, '')
    .replace(',SUBTITLES="t"', '')
    .replace(
      '#EXT-X-STREAM-INF',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Commentary",LANGUAGE="en",URI="media_2.m3u8"\n#EXT-X-STREAM-INF',
    ),
  'media_2.m3u8': sample('media_1.m3u8'),
};

test('the player tells tracks of one language apart by their names', async () => {
  const { job_id: job } = await pages.signPublication('tracks', TWO_TRACKS);
  await using page = await pages.open(addressOf(job));
  await page.getByLabel('Language').waitFor();
  await play(page);
  assert.deepEqual(await page.getByLabel('Language').locator('option').allTextContents(), [
    'English',
    'English (Commentary)',
  ]);
  assert.deepEqual(await page.locator('.timeline figcaption strong:first-child').allTextContents(), [
    'Video 360p, 144 kbit/s',
    'Audio English',
    'Audio English (Commentary)',
  ]);
});
