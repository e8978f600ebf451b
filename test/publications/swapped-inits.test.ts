import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { declaredKinds } from '#publications/playlists/rendition-listings.ts';
import { readInits, readPublication } from '#publications/read-publication.ts';
import { refuseSwappedInits } from '#publications/signing-task.ts';
import { filesAt, folderOf } from '../support/publications/make-folder.ts';
import { makeFfmpegHls, makeFilm, makeShaka } from '../support/publications/make-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { empty, type Files, hls, mpd, segments } from './make-playlists.ts';

const { signal } = new AbortController();
const home = temporaryFolder();
const film = makeFilm(home);

/** Reads what of a folder would be signed, and refuses it where an init segment is in another's place. */
async function check(files: Files, playlist: string): Promise<void> {
  const folder = folderOf(files);
  const publication = await readPublication(folder, { playlist, init: '*init*', frag: '*.m4s' }, signal);
  refuseSwappedInits(publication, await readInits(folder, publication.renditions, signal));
}

describe('an init segment', () => {
  const files = filesAt(makeShaka(film, join(home, 'shaka')));
  const swapped: Files = {
    ...files,
    'video/init.mp4': files['audio/init.mp4'] as Uint8Array,
    'audio/init.mp4': files['video/init.mp4'] as Uint8Array,
  };

  for (const playlist of ['*.m3u8', '*.mpd']) {
    test(`that took the place of another is told by ${playlist}`, async () => {
      await check(files, playlist);
      await assert.rejects(check(swapped, playlist), (error) => {
        assert.ok(error instanceof AppError, String(error));
        assert.equal(error.reason, 'INIT_OF_OTHER_KIND');
        assert.ok(error.message.includes('init.mp4'));
        return true;
      });
    });
  }

  test('of pictures and sound may be said to be of pictures', async () => {
    await check(filesAt(makeFfmpegHls(film, join(home, 'muxed'))), '*.m3u8');
  });
});

describe('the kind of an init segment is what the playlist says', () => {
  const media = { 'a.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s')), ...empty('init.mp4', '1.m4s') };
  const variants: Readonly<Record<string, string | undefined>> = {
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",URI="a.m3u8"': 'audio',
    '#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="v",NAME="Side",URI="a.m3u8"': 'video',
    '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="t",NAME="English",URI="a.m3u8"': undefined,
    '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="mp4a.40.2,avc1.42c01e",AUDIO="a"\na.m3u8': 'video',
    '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="mp4a.40.2"\n\na.m3u8': 'audio',
    '#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=320x180\na.m3u8': 'video',
    '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.42c01e",VIDEO="v"\na.m3u8': undefined,
    '#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8': undefined,
  };
  for (const [line, kind] of Object.entries(variants)) {
    test(`in ${JSON.stringify(line)}`, async () => {
      assert.equal(await kindIn({ ...media, 'master.m3u8': `#EXTM3U\n${line}\n` }, '*.m3u8'), kind);
    });
  }

  const sets: Readonly<Record<string, string | undefined>> = {
    'contentType="audio" mimeType="video/mp4"': 'audio',
    'mimeType="video/mp4"': 'video',
    'mimeType="application/mp4"': undefined,
    'contentType="text"': undefined,
  };
  for (const [attributes, kind] of Object.entries(sets)) {
    test(`in an adaptation set of ${attributes}`, async () => {
      const template = '<SegmentTemplate initialization="init.mp4" media="$Number$.m4s" duration="10"/>';
      const set = `<AdaptationSet ${attributes}><Representation id="r" bandwidth="1">${template}</Representation></AdaptationSet>`;
      assert.equal(
        await kindIn({ 'm.mpd': mpd(`<Period>${set}</Period>`), ...empty('init.mp4', '1.m4s') }, '*.mpd'),
        kind,
      );
    });
  }

  async function kindIn(files: Files, playlist: string): Promise<string | undefined> {
    const folder = folderOf(files);
    const { playlists } = await readPublication(folder, { playlist, init: 'init.mp4', frag: '*.m4s' }, signal);
    return declaredKinds(playlists).get('init.mp4')?.[0]?.kind;
  }
});
