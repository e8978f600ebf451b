import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FolderIndex } from '#publications/playlists/folder-index.ts';
import { parseHlsPlaylist } from '#publications/playlists/hls-playlist.ts';
import { folderOf } from '../support/publications/make-folder.ts';

const index = new FolderIndex(folderOf({ '1.m4s': '' }));

test('a time of day without a zone is one of UTC, wherever the service runs', (t) => {
  const { TZ = 'UTC' } = process.env;
  process.env['TZ'] = 'America/New_York';
  t.after(() => {
    process.env['TZ'] = TZ;
  });
  const dates = ['', 'Z', '+0000', '+00:00'].map((zone) => {
    const tag = `#EXT-X-PROGRAM-DATE-TIME:2026-01-01T12:00:00.5${zone}`;
    const playlist = parseHlsPlaylist('a.m3u8', `#EXTM3U\n#EXT-X-TARGETDURATION:1\n${tag}\n#EXTINF:1,\n1.m4s\n`, index);
    return playlist.kind === 'hls-media' ? playlist.segments[0]?.dateSeconds : null;
  });
  assert.deepEqual(dates, Array(4).fill(Date.UTC(2026, 0, 1, 12, 0, 0, 500) / 1000));
});
