import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { playlistAlterations, VIDEO } from '../operations/playlist-alterations.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
let service: RunningService;
let altered: { readonly name: string; readonly path: string }[];

before(async () => {
  service = await startService({ folder: join(folder, 'service') });
  const options = '-seg_duration 1 -use_timeline 1 -use_template 1 -hls_playlist 1';
  const source = makeFfmpegDash(makeFilm(folder), join(folder, 'dash'), options);
  const { results } = await service.runSync('/v2/sync/c2pa/fragmented', {
    inputs: [{ type: 'local_folder_path', path: source }],
    params: { playlist_pattern: '*.{m3u8,mpd}', init_pattern: '*init*', frag_pattern: '*chunk*' },
  });
  const signed = results[0]?.output_path ?? '';
  const cases = playlistAlterations(readFileSync(join(signed, VIDEO), 'utf8')).flatMap(([playlist, edits]) =>
    Object.entries(edits).map(([name, edit]) => ({ name: `${name} (${playlist})`, playlist, edit })),
  );
  altered = cases.map(({ name, playlist, edit }, index) => {
    const path = join(folder, 'altered', String(index));
    cpSync(signed, path, { recursive: true });
    writeFileSync(join(path, playlist), edit(readFileSync(join(path, playlist), 'utf8')));
    return { name, path };
  });
});
after(() => service?.stop());

/** Verifies all altered publications. Returns those that are neither invalid nor refused for their playlists, with what is said. */
async function accepted(presentation: 'as_signed' | 'equivalent') {
  const inputs = altered.map(({ path }) => ({ type: 'local_folder_path', path }));
  const { results } = await service.runSync('/v2/sync/verify', { inputs, params: { presentation } });
  assert.equal(results.length, altered.length);
  return results.flatMap(({ verification, error }, index) => {
    const isRefused = /line \d+/.test(error ?? '') || verification?.state === 'invalid';
    return isRefused ? [] : [`${altered[index]?.name}: ${verification?.summary ?? error}`];
  });
}

describe('a publication of this service whose playlists were altered', () => {
  test('is invalid', async () => assert.deepEqual(await accepted('as_signed'), []));

  test('is invalid too for those who accept other playlists, because players show its media otherwise', async () =>
    assert.deepEqual(await accepted('equivalent'), []));
});
