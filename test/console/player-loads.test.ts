import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { box, FTYP, fullBox, trak, u32 } from '../support/media/movie-bytes.ts';
import { alter, card, otherwise, ProvenancePages, play, reordered, SAMPLES, SUBTITLED } from './provenance-pages.ts';

let pages: ProvenancePages;
let media = '';
before(async () => {
  pages = await ProvenancePages.start();
  media = await readFile(join(SAMPLES, 'publication/media_0.m3u8'), 'utf8');
});
after(() => pages?.stop());

const UNCHANGED = 'Unchanged: media, playlists, text and pictures are as they were signed.';
const addressOf = (job: string) => `#/play?job=${job}&index=0&path=master.m3u8`;
const beforeSegments = (text: string, ...lines: string[]) => text.replace('#EXTINF', `${lines.join('\n')}\n#EXTINF`);

/** Asserts that the player finds nothing, when it has played a while. */
async function assertUnchanged(page: Page): Promise<void> {
  await card(page).getByText(UNCHANGED).waitFor();
  await play(page);
  await page.locator('video').evaluate(async (video: { currentTime: number }) => {
    while (video.currentTime < 1.5) await new Promise((resolve) => setTimeout(resolve, 50));
  });
  assert.deepEqual(await page.getByRole('alert').allTextContents(), []);
  await card(page).getByText(UNCHANGED).waitFor();
}

/** Subtitles whose text the player loads twice. */
const TEXT_TWICE = SUBTITLED['text.m3u8'].replace('#EXTINF:5.000,', '#EXTINF:2.000,\ntext.vtt\n#EXTINF:3.000,');
/** A playlist that the player loads again at once, because it does not end. */
const growing = (text: string) => text.replace('#EXT-X-ENDLIST', '').replace('TARGETDURATION:3', 'TARGETDURATION:1');

for (const [file, change, sentence] of [
  ['media_0.m3u8', (text: string) => growing(reordered(text)), 'Not as signed: "media_0.m3u8" was changed.'],
  ['text.vtt', otherwise, 'Not as signed: files that "text.m3u8" names were changed.'],
] as const) {
  test(`the player says on that ${file} was another one, when it is loaded as it was signed`, async () => {
    const { job_id: job } = await pages.signPublication(`again-${file}`, { ...SUBTITLED, 'text.m3u8': TEXT_TWICE });
    await using page = await pages.open('');
    const restored = Promise.withResolvers<void>();
    let loads = 0;
    await page.route(`**/${file}`, async (route) => {
      loads += 1;
      const [load, response] = [loads, await route.fetch({ timeout: 0 })];
      const body = await response.text();
      await route.fulfill({ response, body: load === 2 ? change(body) : body });
      if (load === 3) restored.resolve();
    });
    await page.goto(`${pages.base}/${addressOf(job)}`);
    await restored.promise;
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 1000))');
    await page.getByRole('alert').getByText(sentence).waitFor();
    await page.locator('.on-screen .state.invalid').waitFor();
  });
}

describe('the player accepts, and plays,', () => {
  test('addresses made of variables', async () => {
    const variables = ['#EXT-X-DEFINE:NAME="init",VALUE="init-0"', '#EXT-X-DEFINE:NAME="name",VALUE="fragment-0"'];
    const text = media.replace(
      '#EXT-X-MAP:URI="init-0.mp4"',
      [...variables, '#EXT-X-MAP:URI="{$init}.mp4"'].join('\n'),
    );
    const { job_id: job } = await pages.signPublication('variables', {
      'media_0.m3u8': text.replaceAll(/^fragment-0/gm, '{$name}'),
    });
    await using page = await pages.open(addressOf(job));
    await assertUnchanged(page);
  });

  test('text in byte ranges of one file', async () => {
    const [first, second] = [SUBTITLED['text.vtt'], SUBTITLED['text.vtt'].replaceAll('00:0', '00:1')];
    const ranges = `#EXT-X-BYTERANGE:${first.length}@0\ntext.vtt\n#EXTINF:3.000,\n#EXT-X-BYTERANGE:${second.length}@${first.length}`;
    const { job_id: job, output } = await pages.signPublication('ranges', {
      ...SUBTITLED,
      'text.m3u8': SUBTITLED['text.m3u8'].replace('#EXTINF:5.000,', `#EXTINF:2.000,\n${ranges}`),
      'text.vtt': first + second,
    });
    {
      await using page = await pages.open(addressOf(job));
      await assertUnchanged(page);
    }
    await writeFile(join(output, 'text.vtt'), otherwise(first) + second);
    await using page = await pages.open(addressOf(job));
    await page.getByRole('alert').getByText('Not as signed: files that "text.m3u8" names were changed.').waitFor();
  });

  test('subtitles in fragments, which it verifies too', async () => {
    const { job_id: job, output } = await pages.signPublication('fragments', {
      ...SUBTITLED,
      ...subtitleFragments(),
      'text.m3u8': beforeSegments(SUBTITLED['text.m3u8'], '#EXT-X-MAP:URI="init-t.mp4"').replace(
        'text.vtt',
        'fragment-t.m4s',
      ),
    });
    {
      await using page = await pages.open(addressOf(job));
      await assertUnchanged(page);
      await page.locator('.timeline', { hasText: 'Subtitles English: 1 of 1 fragments verified' }).waitFor();
    }
    await alter(join(output, 'fragment-t.m4s'));
    await using page = await pages.open(addressOf(job));
    await page.getByRole('button', { name: 'Verify all fragments' }).or(page.locator('rect.invalid')).first().waitFor();
    await page
      .locator('.timeline', { hasText: 'Subtitles English' })
      .locator('rect.invalid')
      .waitFor({ state: 'attached' });
  });
});

test('the player plays the programme alone, whatever a playlist would have played in between', async () => {
  const list =
    '#EXT-X-DATERANGE:ID="a",CLASS="com.apple.hls.interstitial",START-DATE="2026-11-21T14:17:22.000Z",X-ASSET-LIST="list.json",X-COM-EVENTS="events.json"';
  const { job_id: job, output } = await pages.signPublication('interstitial', {
    'media_0.m3u8': beforeSegments(media, list),
    'list.json': '{"ASSETS":[]}',
    'events.json': '[]',
  });
  const asked: string[] = [];
  {
    await using page = await pages.open('');
    page.on('request', (sent) => asked.push(new URL(sent.url()).search));
    await page.goto(`${pages.base}/${addressOf(job)}`);
    await assertUnchanged(page);
  }
  assert.deepEqual(
    asked.filter((search) => search.includes('_HLS_')),
    [],
  );
  await writeFile(join(output, 'list.json'), '{"ASSETS":[{"URI":"other.m3u8","DURATION":2}]}');
  await using page = await pages.open(addressOf(job));
  await page.getByRole('alert').getByText('Not as signed: files that "media_0.m3u8" names were changed.').waitFor();
});

/** Returns subtitles (TTML) in one fragment. */
function subtitleFragments(): Record<string, Buffer> {
  const track = trak({ handlerType: 'subt', entries: [['stpp', 1]] });
  const init = Buffer.concat([FTYP, box('moov', track, box('mvex', fullBox('trex', 0, u32(1, 1, 0, 0, 0))))]);
  const text = Buffer.from(
    '<?xml version="1.0"?>\n<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p begin="0s" end="5s">The sun goes down.</p></div></body></tt>\n',
  );
  const moof = (offset: number): Buffer => {
    const run = fullBox('trun', 0x000301, u32(1, offset, 5, text.length));
    return box('moof', fullBox('mfhd', 0, u32(1)), box('traf', fullBox('tfhd', 0x020000, u32(1)), run));
  };
  const fragment = Buffer.concat([moof(moof(0).length + 8), box('mdat', text)]);
  return { 'init-t.mp4': init, 'fragment-t.m4s': fragment };
}
