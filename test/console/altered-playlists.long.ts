import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MASTER, playlistAlterations, VIDEO } from '../operations/playlist-alterations.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { ProvenancePages } from './provenance-pages.ts';

let pages: ProvenancePages;
let job = '';
let output = '';

before(async () => {
  pages = await ProvenancePages.start();
  const options = '-seg_duration 1 -use_timeline 1 -use_template 1 -hls_playlist 1';
  const source = makeFfmpegDash(makeFilm(pages.folder), join(pages.folder, 'dash'), options);
  ({ job_id: job, output } = await pages.sign('/v2/sync/c2pa/fragmented', source, {
    playlist_pattern: '*.{m3u8,mpd}',
    init_pattern: '*init*',
    frag_pattern: '*chunk*',
  }));
});
after(() => pages?.stop());

/** Begins what the player says of a main playlist that leads it nowhere. */
const UNREADABLE = /^A playlist cannot be/;

test('the player says each time that a playlist was altered by which a player shows signed media otherwise', async () => {
  const silent: string[] = [];
  await using page = await pages.open('');
  for (const [playlist, edits] of playlistAlterations(await readFile(join(output, VIDEO), 'utf8'))) {
    // The console plays HLS.
    if (!playlist.endsWith('.m3u8')) continue;
    const path = join(output, playlist);
    const signed = await readFile(path, 'utf8');
    for (const [name, edit] of Object.entries(edits)) {
      await writeFile(path, edit(signed));
      await page.goto('about:blank');
      await page.goto(`${pages.base}/#/play?job=${job}&index=0&path=${MASTER}`);
      const isOfMain = playlist === MASTER;
      const said = page.getByRole('alert').getByText(`Not as signed: "${playlist}" was changed.`);
      const told = isOfMain ? said.or(page.getByRole('alert').getByText(UNREADABLE)) : said;
      await told
        .first()
        .waitFor()
        .catch(async () => {
          silent.push(`${name} (${playlist}): ${await page.getByRole('main').textContent()}`);
        });
    }
    await writeFile(path, signed);
  }
  assert.deepEqual(silent, []);
});
