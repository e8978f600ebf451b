import assert from 'node:assert/strict';
import { appendFile, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { collectSdkObjects } from '../support/manifests/collect-sdk-objects.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { assertAccessible } from './browser.ts';
import {
  ALTERED,
  alter,
  assertSaid,
  card,
  drop,
  ProvenancePages,
  play,
  reordered,
  SAMPLES,
  SUBTITLED,
  seek,
} from './provenance-pages.ts';

let pages: ProvenancePages;
before(async () => {
  pages = await ProvenancePages.start();
});
after(() => pages.stop());
after(collectSdkObjects);

describe('the page that inspects', () => {
  test('tells of an output who signed it, on which trust list they are, what was done, and what it was made from', async () => {
    const { job_id: id } = await pages.sign('/v2/sync/c2pa/video', join(SAMPLES, 'evening-light.mp4'));
    await using page = await pages.open(`#/inspect?job=${id}&index=0`);
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

  test('reads a file that is dropped with the trust lists of the service, and sends it nowhere', async () => {
    const { output } = await pages.sign('/v2/sync/c2pa/audio', join(SAMPLES, 'four-notes.mp3'));
    await using page = await pages.open('#/inspect');
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
});

test('a file is said to be published by whom its identity assertion names where a list of publishers has them', async () => {
  const stranger = await testIdentity({ leaf: { organization: 'Example News' } });
  await using page = await pages.open('#/inspect');
  for (const [name, publisher, words] of [
    ['known.wav', pages.publisher, 'Published by "Example News", who is on publishers, and signed by'],
    ['unknown.wav', stranger, 'It names "Example News" as its publisher'],
  ] as const) {
    const file = join(pages.folder, name);
    await writeFile(file, (await signWav(testAuthor({ publisher: publisher.signer }))).bytes);
    await drop(page, file);
    await page.locator('.verdict', { hasText: words }).waitFor();
  }
  await card(page).getByText('on no list of publishers that this service knows').first().waitFor();
  await assertAccessible(page);
});

test('a file with a box that no hash covers, and in which players may find media, is invalid where the service can look', async () => {
  const { job_id: id, output } = await pages.sign('/v2/sync/c2pa/video', join(SAMPLES, 'evening-light.mp4'));
  // An index of fragments that holds another box.
  await appendFile(output, Buffer.from('000000106d6672610000000866726565', 'hex'));
  for (const name of ['play', 'inspect']) {
    await using page = await pages.open(`#/${name}?job=${id}&index=0`);
    await page.locator('.verdict .state.invalid').waitFor();
  }
  await using page = await pages.open('#/inspect');
  await drop(page, output);
  await page.locator('.verdict .state.trusted').waitFor();
  await card(page).getByText('This browser did not look for media in the bytes').waitFor();
});

describe('the player', () => {
  test('turns red at the second at which an altered fragment begins, says which and why, and plays on', async () => {
    const { job_id: id, output } = await pages.signPublication('altered');
    await alter(join(output, ALTERED.file));
    await using page = await pages.open(`#/play?job=${id}&index=0`);
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

  describe('of a publication whose playlists are signed', () => {
    let job = '';
    let output = '';
    before(async () => {
      ({ job_id: job, output } = await pages.signPublication('subtitled', SUBTITLED));
    });
    const open = (entry = 'master.m3u8') => pages.open(`#/play?job=${job}&index=0&path=${entry}`);

    test('says that media, playlists and text are as they were signed', async () => {
      await using page = await open();
      await card(page).getByText('Unchanged: media, playlists, text and pictures are as they were signed.').waitFor();
      await play(page);
      await page.locator('.on-screen .state.trusted').waitFor();
      assert.equal(await page.getByRole('alert').count(), 0);
      assert.equal(await page.locator('rect.changed').count(), 0);
    });

    test('says it from the start where the order of fragments was changed', async () => {
      await assertSaid(pages, job, output, {
        file: 'media_0.m3u8',
        change: reordered,
        sentence: 'Not as signed: "media_0.m3u8" was changed.',
        ofFragment: 'It is not played where it was signed, as fragment 1.',
        timelines: ['Video 360p, 144 kbit/s'],
      });
    });

    test('turns fragments red whose files were exchanged under the signed names', async () => {
      const [first, second] = [join(output, 'fragment-0-1.m4s'), join(output, 'fragment-0-2.m4s')];
      const exchange = async () => {
        await rename(first, `${first}.aside`);
        await rename(second, first);
        await rename(`${first}.aside`, second);
      };
      await exchange();
      try {
        await using page = await open();
        const video = page.locator('.timeline').first();
        const reason = 'com.attestream.publication.mismatch';
        for (const index of [0, 1]) {
          await video.locator(`li[data-index="${index}"][data-reason="${reason}"]`).waitFor();
        }
        await video.locator('rect.trusted[data-index="2"]').waitFor({ state: 'attached' });
        await page.locator('.on-screen .state.invalid').waitFor();
      } finally {
        await exchange();
      }
    });

    test('says that a playlist of media stands alone whose main playlist is gone, and not while that is there', async () => {
      const main = join(output, 'master.m3u8');
      const unchanged = 'Unchanged: media, playlists, text and pictures are as they were signed.';
      {
        await using page = await open('media_0.m3u8');
        await card(page).getByText(unchanged).waitFor();
      }
      await rename(main, `${main}.aside`);
      try {
        await using page = await open('media_0.m3u8');
        await page.getByRole('alert').getByText('Not as signed: "master.m3u8"').waitFor();
      } finally {
        await rename(`${main}.aside`, main);
      }
    });

    test('turns a fragment red that holds a box which no hash covers, and in which players may find media', async () => {
      const path = join(output, 'fragment-0-1.m4s');
      const before = await readFile(path);
      // An index of fragments with a size of 64 bits, which hls.js does not know.
      await writeFile(path, Buffer.concat([before, Buffer.from('000000016d6672610000000000000010', 'hex')]));
      try {
        await using page = await open();
        const reason = 'assertion.bmffHash.additionalExclusionsPresent';
        await page.locator('.timeline').first().locator(`li[data-index="0"][data-reason="${reason}"]`).waitFor();
      } finally {
        await writeFile(path, before);
      }
    });
  });
});
