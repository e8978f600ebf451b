import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Page, Route } from 'playwright-core';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { alter, card, ProvenancePages, play, SAMPLES, SUBTITLED } from './provenance-pages.ts';

// Origins that answer requests otherwise than the files that were signed, and publications of which the player knows a part.

const sample = (name: string) => readFileSync(join(SAMPLES, 'publication', name));
const media = sample('media_0.m3u8').toString();
const UNCHANGED = 'Unchanged: media, playlists, text and pictures are as they were signed.';
const addressOf = (job: string) => `#/play?job=${job}&index=0&path=master.m3u8`;
/** Returns the playlist of pictures without its second fragment. */
const shortened = (text: string) => text.replace(/#EXTINF:[^\n]*\n(?:#[^\n]*\n)*fragment-0-2\.m4s\n/, '');

let pages: ProvenancePages;
let job = '';
let output = '';
before(async () => {
  pages = await ProvenancePages.start();
  ({ job_id: job, output } = await pages.signPublication('origins', {
    ...SUBTITLED,
    'master.m3u8': SUBTITLED['master.m3u8'].replace(
      '#EXT-X-STREAM-INF',
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="t",NAME="German",LANGUAGE="de",URI="text-de.m3u8"\n#EXT-X-STREAM-INF',
    ),
    'text-de.m3u8': SUBTITLED['text.m3u8'].replace('text.vtt', 'text-de.vtt'),
    'text-de.vtt': SUBTITLED['text.vtt'].replace('The sun goes down', 'Die Sonne geht unter'),
    'trailer.m3u8': shortened(media),
  }));
});
after(() => pages?.stop());

/** Opens the player, with requests of some address answered by an origin. */
async function playFrom(
  name: string | RegExp,
  answer: (route: Route) => Promise<void>,
  of = job,
): ReturnType<ProvenancePages['open']> {
  const page = await pages.open('');
  await page.route(name, answer);
  await page.goto(`${pages.base}/${addressOf(of)}`);
  return page;
}
const say = (page: Page, sentence: string) => page.getByRole('alert').getByText(sentence).waitFor();
/** Answers nothing. */
const never = Promise.withResolvers<void>().promise;
const isOfPlayer = (route: Route) => route.request().resourceType() === 'xhr';
const leadTo = (name: string) => (route: Route) =>
  route.fulfill({ status: 302, headers: { location: new URL(name, route.request().url()).href } });

describe('the player says that a playlist is not the signed one', () => {
  for (const [file, other] of [
    ['text.m3u8', 'text-de.m3u8'],
    ['media_0.m3u8', 'trailer.m3u8'],
  ] as const) {
    test(`where ${file} is answered by a redirect to another signed one`, async () => {
      await using page = await playFrom(`**/${file}`, leadTo(other));
      await say(page, `Not as signed: "${file}" was changed.`);
    });
  }

  test('while a file that it names never comes', async () => {
    await using page = await pages.open('');
    await page.route('**/never.bin', () => never);
    await page.route('**/media_0.m3u8', async (route) => {
      const response = await route.fetch({ timeout: 0 });
      const text = await response.text();
      const altered = shortened(text).replace('#EXTINF', '#EXT-X-OTHER:URI="never.bin"\n#EXTINF');
      await route.fulfill({ response, body: isOfPlayer(route) ? altered : text });
    });
    await page.goto(`${pages.base}/${addressOf(job)}`);
    await say(page, 'Not as signed: "media_0.m3u8" was changed.');
    await page.locator('.on-screen .state.invalid').waitFor();
  });

  test('where one is not there', async () => {
    await using page = await playFrom('**/text.m3u8', (route) => route.fulfill({ status: 404 }));
    await say(page, 'Not as signed: "text.m3u8" is missing.');
  });
});

test('the player accepts a main playlist that lies elsewhere with all that it names', async () => {
  await using page = await pages.open('');
  await page.route('**/latest.m3u8', leadTo('master.m3u8'));
  const folder = `v2/jobs/${job}/outputs/0`;
  await page.goto(`${pages.base}/#/play?src=${encodeURIComponent(`${folder}/latest.m3u8`)}`);
  await card(page).getByText(UNCHANGED).waitFor();
});

test('the player calls a fragment that is not there not intact, and verifies those behind it', async () => {
  const { job_id: id, output: folder } = await pages.signPublication('gone');
  await rm(join(folder, 'fragment-0-2.m4s'));
  await using page = await pages.open(`#/play?job=${id}&index=0`);
  await page.locator('rect.trusted').first().waitFor({ state: 'attached' });
  await page.getByRole('button', { name: 'Verify all fragments' }).click();
  const pictures = page.locator('.timeline').first();
  await pictures.locator('rect.trusted[data-index="2"]').waitFor({ state: 'attached' });
  await pictures.locator('rect.invalid[data-index="1"]').waitFor({ state: 'attached' });
  await pictures.getByText('It is not there.').waitFor();
});

test('the player calls renditions unsigned that were unsigned when the others were signed, and nothing changed', async () => {
  const { job_id: id, output: folder } = await pages.signPublication(
    'half',
    {},
    { init_pattern: 'init-0.mp4', frag_pattern: 'fragment-0-*.m4s' },
  );
  {
    await using page = await pages.open(addressOf(id));
    await page.locator('rect.none').first().waitFor({ state: 'attached' });
    await card(page)
      .getByText('The playlists also lead to one part that nobody signed, such as "init-1.mp4".')
      .waitFor();
    await page.locator('.on-screen .state.trusted').waitFor();
    assert.deepEqual(await page.getByRole('alert').allTextContents(), []);
  }
  const path = join(folder, 'fragment-1-1.m4s');
  await alter(path);
  await using page = await pages.open(addressOf(id));
  await say(page, 'Not as signed: files that "media_1.m3u8" names were changed.');
  await say(page, 'From 00:00:00 on, this is not what was signed');
});

test('the player says of a publication without provenance that it has none', async () => {
  for (const name of ['init-0.mp4', 'init-1.mp4']) await rename(join(output, name), join(output, `${name}.signed`));
  try {
    for (const name of ['init-0.mp4', 'init-1.mp4']) await writeFile(join(output, name), sample(name));
    await using page = await pages.open(addressOf(job));
    await page.locator('rect.none').first().waitFor({ state: 'attached' });
    await card(page).getByText('No provenance information.').first().waitFor();
    assert.deepEqual(await page.getByRole('alert').allTextContents(), []);
  } finally {
    for (const name of ['init-0.mp4', 'init-1.mp4']) await rename(join(output, `${name}.signed`), join(output, name));
  }
});

test('the player takes fragments that were verified before the presentation was read for those of its manifest', async () => {
  const verified = Promise.withResolvers<void>();
  let loads = 0;
  await using page = await playFrom('**/fragment-0-1.m4s', async (route) => {
    loads += 1;
    if (loads === 1) await verified.promise;
    await route.continue();
  });
  await page.getByRole('button', { name: 'Verify all fragments' }).click();
  await page.locator('rect.trusted[data-index="2"]').first().waitFor({ state: 'attached' });
  await card(page).getByText('The playlists were not compared').waitFor();
  verified.resolve();
  await card(page).getByText(UNCHANGED).waitFor();
  assert.deepEqual(await page.getByRole('alert').allTextContents(), []);
});

test('no server chooses between renditions that play', async () => {
  const steered = SUBTITLED['master.m3u8'].replace(
    '#EXT-X-VERSION:7\n',
    '#EXT-X-VERSION:7\n#EXT-X-CONTENT-STEERING:SERVER-URI="steering.json",PATHWAY-ID="."\n',
  );
  const { job_id: id } = await pages.signPublication('steered', {
    ...SUBTITLED,
    'master.m3u8': steered,
    'steering.json': '{"VERSION":1,"TTL":300,"PATHWAY-PRIORITY":["."]}',
  });
  const asked: string[] = [];
  await using page = await playFrom(
    '**/steering.json*',
    async (route) => {
      if (isOfPlayer(route)) asked.push(route.request().url());
      await route.continue();
    },
    id,
  );
  await play(page);
  await card(page)
    .getByText(/as they were signed/)
    .waitFor();
  assert.deepEqual(asked, []);
});

describe('of playlists that it cannot compare, the player says that they are not covered:', () => {
  const NOT_COMPARED = 'Every fragment that was loaded is as it was signed. The playlists were not compared';

  test('those under one digest with others that it does not load', async () => {
    const count = 70;
    const tracks = Array.from(
      { length: count },
      (_, index) => `text-of-a-long-name-for-a-playlist-of-subtitles-${index}.m3u8`,
    );
    const listed = tracks.map(
      (name, index) =>
        `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="t",NAME="Track ${index}",LANGUAGE="x-${index}",URI="${name}"\n`,
    );
    const { job_id: id } = await pages.signPublication('digest', {
      ...SUBTITLED,
      ...Object.fromEntries(tracks.map((name) => [name, SUBTITLED['text.m3u8']])),
      'master.m3u8': SUBTITLED['master.m3u8'].replace('#EXT-X-STREAM-INF', `${listed.join('')}#EXT-X-STREAM-INF`),
      'trailer.m3u8': shortened(media),
    });
    await using page = await pages.open(addressOf(id));
    await page.getByRole('status').getByText('Inspect has the service verify that').waitFor();
    await card(page).getByText(NOT_COMPARED).first().waitFor();
  });

  describe('those that nobody signed', () => {
    let id = '';
    let folder = '';
    before(async () => {
      ({ job_id: id, output: folder } = await pages.signPublication('others'));
      const names = await readdir(join(SAMPLES, 'publication'));
      const files = Object.fromEntries(names.map((name) => [name, sample(name)]));
      const renditions = [0, 1].map((track) => ({
        init: { path: `init-${track}.mp4`, range: null },
        fragments: [1, 2, 3].map((number) => ({ path: `fragment-${track}-${number}.m4s`, range: null })),
      }));
      const signed = await signAsOthers(files, renditions, {});
      for (const [path, bytes] of Object.entries(signed)) await writeFile(join(folder, path), bytes);
    });

    test('whatever they leave out', async () => {
      await writeFile(join(folder, 'media_0.m3u8'), shortened(media));
      await using page = await pages.open(addressOf(id));
      await page.getByRole('status').getByText('Nobody signed the playlists').waitFor();
      await card(page).getByText(NOT_COMPARED).first().waitFor();
      await writeFile(join(folder, 'media_0.m3u8'), media);
    });

    test('and shows what plays without an init segment', async () => {
      await writeFile(join(folder, 'other.ts'), Buffer.alloc(188 * 20, 0x47));
      await writeFile(join(folder, 'media_0.m3u8'), media.replace('#EXT-X-MAP', '#EXTINF:2,\nother.ts\n#EXT-X-MAP'));
      await using page = await pages.open(addressOf(id));
      await say(page, 'From 00:00:00 on, this is not what was signed');
      await page.locator('rect.none').first().waitFor({ state: 'attached' });
      await writeFile(join(folder, 'media_0.m3u8'), media);
    });

    test('and shows what no playlist named before', async () => {
      await writeFile(join(folder, 'other.m4s'), await readFile(join(folder, 'fragment-1-1.m4s')));
      await using page = await playFrom(
        '**/media_0.m3u8',
        (route) => route.fulfill({ body: isOfPlayer(route) ? media.replace('fragment-0-1', 'other') : media }),
        id,
      );
      await page.locator('rect.invalid[data-index="3"]').waitFor({ state: 'attached' });
      await say(page, 'From 00:00:00 on, this is not what was signed: fragment 3');
    });
  });
});
