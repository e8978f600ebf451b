import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findPublication, NO_PATTERNS } from '#publications/find-publication.ts';
import { readPublication } from '#publications/read-publication.ts';
import { folderOf } from '../support/publications/make-folder.ts';
import { empty, hls, read, renditionsOf, segments } from './make-playlists.ts';

const never = new AbortController().signal;
const MEDIA = {
  'pub/v/index.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s')),
  ...empty('pub/v/init.mp4', 'pub/v/1.m4s'),
};
const MASTER = [
  '#EXTM3U',
  '#EXT-X-SESSION-DATA:DATA-ID="com.example.title",URI="../titles/caf%C3%A9.json"',
  '#EXT-X-CONTENT-STEERING:SERVER-URI="/nowhere/steer.json",PATHWAY-ID="a"',
  '#EXT-X-SESSION-DATA:DATA-ID="com.example.out",URI="../../../../etc/passwd"',
  '#EXT-X-STREAM-INF:BANDWIDTH=1000',
  'v/index.m3u8',
  '',
].join('\n');

describe('the files that go with a signed publication', () => {
  test('are those of gaps too, unless another playlist plays them', async () => {
    const playlist = (tag: string): string =>
      hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s'), ...[tag].filter(Boolean), ...segments('2.m4s'));
    const files = { 'p.m3u8': playlist('#EXT-X-GAP'), ...empty('init.mp4', '1.m4s', '2.m4s') };
    const { otherPaths, warnings } = await read(files);
    assert.deepEqual({ otherPaths, warnings }, { otherPaths: ['2.m4s'], warnings: [] });
    assert.deepEqual(await renditionsOf(files), ['init.mp4: 1.m4s']);
    assert.deepEqual(await renditionsOf({ ...files, 'q.m3u8': playlist('') }), ['init.mp4: 1.m4s 2.m4s']);
  });

  test('lie in the folders of its playlists and media and below them, and not beside those', async () => {
    const { carried, left } = await carriedOf({
      ...MEDIA,
      ...empty('pub/v/thumbs/1.jpg', 'pub/v/cover.jpg', 'pub/readme.txt', 'conf/.env', 'conf/db.toml', 'pub/vx/a.txt'),
    });
    assert.deepEqual(carried, ['pub/v/cover.jpg', 'pub/v/thumbs/1.jpg']);
    assert.deepEqual(left, ['conf/.env', 'conf/db.toml', 'pub/readme.txt', 'pub/vx/a.txt']);
  });

  test('are no compressed copies that servers may send in place of others, there or not', async () => {
    const files = {
      'index.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s')),
      ...empty('init.mp4', '1.m4s', '1.m4s.br', 'index.m3u8.gz', 'gone.mpd.zst', 'backup.tar.gz'),
    };
    const { carried, left } = await carriedOf(files, 'index.m3u8');
    assert.deepEqual(carried, ['backup.tar.gz']);
    assert.deepEqual(left, ['1.m4s.br', 'gone.mpd.zst', 'index.m3u8.gz']);
  });

  test('are all of a folder whose root holds a playlist, but no hidden file, none in a hidden folder, and no link', async () => {
    const files = {
      'index.m3u8': hls('#EXT-X-MAP:URI="v/init.mp4"', ...segments('v/1.m4s')),
      ...empty(
        'v/init.mp4',
        'v/1.m4s',
        'conf/db.toml',
        '.env',
        '.git/config',
        'v/.1.m4s.swp',
        'a..b/c.d',
        'v/link.txt',
      ),
    };
    const { carried, left } = await carriedOf(files, 'index.m3u8', ['v/link.txt']);
    assert.deepEqual(carried, ['a..b/c.d', 'conf/db.toml']);
    assert.deepEqual(left, ['.env', '.git/config', 'v/.1.m4s.swp', 'v/link.txt']);
  });

  test('do not lie beside a text segment elsewhere that one of its playlists names', async () => {
    const files = {
      ...MEDIA,
      'pub/v/text.m3u8': hls(...segments('../../conf/a.vtt')),
      ...empty('conf/a.vtt', 'conf/db.toml'),
    };
    const { carried, left } = await carriedOf(files, 'pub/v/*.m3u8');
    assert.deepEqual(carried, ['conf/a.vtt']);
    assert.deepEqual(left, ['conf/db.toml']);
  });

  test('are also those that a playlist names, wherever in the folder they lie', async () => {
    const files = {
      ...MEDIA,
      'pub/master.m3u8': MASTER,
      ...empty('titles/café.json', 'titles/other.json', 'nowhere.json', 'etc/passwd'),
    };
    const { carried, left } = await carriedOf(files, 'pub/master.m3u8');
    assert.deepEqual(carried, ['titles/café.json']);
    assert.deepEqual(left, ['etc/passwd', 'nowhere.json', 'titles/other.json']);
  });

  test('are named in the warning up to ten, and counted beyond', async () => {
    const others = Array.from({ length: 25 }, (_, index) => `conf/${index}.toml`);
    const { warnings } = await readPublication(folderOf({ ...MEDIA, ...empty(...others) }), patterns(), never);
    const [details] = warnings.map(({ details: each }) => each as { names: string[]; count: number });
    assert.equal(details?.names.length, 10);
    assert.equal(details?.count, 25);
  });
});

test('a publication that is copied as it is takes the same files along', async () => {
  const files = {
    ...MEDIA,
    'pub/master.m3u8': MASTER,
    '.old/index.m3u8': MEDIA['pub/v/index.m3u8'],
    ...empty('pub/v/.note', 'pub/poster.jpg', 'titles/café.json', 'conf/db.toml', '.old/init.mp4', '.old/1.m4s'),
  };
  const found = await findPublication(folderOf(files), NO_PATTERNS, never);
  assert.deepEqual([...(found?.copied.paths ?? [])].sort(), [
    'pub/master.m3u8',
    'pub/poster.jpg',
    'pub/v/1.m4s',
    'pub/v/index.m3u8',
    'pub/v/init.mp4',
    'titles/café.json',
  ]);
  assert.deepEqual(
    found?.copied.warnings.map(({ reason }) => reason),
    ['FILES_NOT_CARRIED'],
  );
});

function patterns(playlist = 'pub/v/*.m3u8') {
  return { playlist, init: '**/init.mp4', frag: '**/*.m4s' };
}

async function carriedOf(files: Readonly<Record<string, string>>, playlist?: string, links: readonly string[] = []) {
  const made = folderOf(files);
  const folder = { ...made, files: made.files.map((file) => ({ ...file, isLink: links.includes(file.path) })) };
  const { otherPaths, warnings } = await readPublication(folder, patterns(playlist), never);
  const left = warnings.flatMap(({ reason, details }) =>
    reason === 'FILES_NOT_CARRIED' ? (details as { names: string[] }).names : [],
  );
  return { carried: [...otherPaths].sort(), left: left.sort() };
}
