import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { assertAccessible } from './browser.ts';
import { ALTERED, alter, card, drop, ProvenancePages, play, SAMPLES, seek } from './provenance-pages.ts';

let pages: ProvenancePages;
before(async () => {
  pages = await ProvenancePages.start();
});
after(() => pages.stop());

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
});
