import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { signFragmented } from '#operations/registry.ts';
import { filesAt, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { runInput } from '../support/run-input.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Playlists that others lead to as interstitials: players load them from the entry that is published, so its verdict covers them.

const home = temporaryFolder();
const made = filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash')));
const params = { playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init*', frag_pattern: 'chunk*' };
const textOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? '').toString();

for (const ad of ['ad', '.ad']) {
  test(`a publication is changed with a playlist of its interstitial in the folder ${ad}`, async () => {
    const range = `#EXT-X-DATERANGE:ID="a",CLASS="com.apple.hls.interstitial",START-DATE="2020-01-01T00:00:00Z",X-ASSET-URI="${ad}/spot.m3u8"`;
    const folder = writeFiles(join(home, `of-${ad}`, 'show'), {
      ...made,
      'media_0.m3u8': textOf(made['media_0.m3u8']).replace('#EXTINF', `${range}\n#EXTINF`),
      ...Object.fromEntries(
        Object.entries(made).map(([path, bytes]) => [`${ad}/${path.replace('master', 'spot')}`, bytes]),
      ),
    });
    const input = { type: 'local_folder_path', path: folder } as const;
    const output = filesAt((await runInput(signFragmented, { input, params }, temporaryFolder())).outputPath);
    const presentationOf = async (playlist: string, entries: readonly string[]) => {
      const text = `${textOf(output[playlist])}\n`;
      const path = writeFiles(join(temporaryFolder(), 'show'), {
        ...output,
        ...(playlist !== '' && { [playlist]: text }),
      });
      const asked = { params: entries.length === 0 ? {} : { entries: [...entries] } };
      const { verification } = await verifyInput({ type: 'local_folder_path', path }, join(path, '..'), asked);
      return [verification.state, verification.publication?.presentation];
    };
    for (const entries of [[], ['/master.m3u8']]) {
      assert.deepEqual(await presentationOf('', entries), ['valid', 'as_signed']);
      for (const playlist of ['spot.m3u8', 'media_1.m3u8'])
        assert.deepEqual(await presentationOf(`${ad}/${playlist}`, entries), ['invalid', 'changed']);
    }
  });
}
