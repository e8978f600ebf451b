import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { readPublication } from '#publications/read-publication.ts';
import { filesAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Playlists whose addresses can be read in two ways: players open other files than those that were signed.

type Files = Readonly<Record<string, Buffer>>;
type Edit = (files: Files) => Files;

const { signal } = new AbortController();
const home = temporaryFolder();
const OPTIONS = '-seg_duration 1 -use_timeline 1 -use_template 1 -hls_playlist 1';
const FIRST = 'chunk-stream0-00001.m4s';
const INIT = 'init-stream0.m4s';
const VIDEO = 'media_0.m3u8';
const MPD = 'manifest.mpd';
const HOST = 'http://media.example/show/';
const patterns = { playlist: '{*.mpd,*.m3u8}', init: '*init*', frag: '**/*chunk*' };
const made: Files = Object.fromEntries(
  Object.entries(filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash'), OPTIONS))).map(([path, bytes]) => [
    path,
    Buffer.from(bytes),
  ]),
);
const { renditions } = await readPublication(folderOf(made), patterns, signal);
const signed: Files = await signAsOthers(made, renditions, {});
const decoy = made['chunk-stream1-00001.m4s'] as Buffer;
let count = 0;

const isPlaylist = (path: string): boolean => /\.(?:m3u8|mpd)$/.test(path);
const inPlaylists =
  (edit: (text: string, path: string) => string): Edit =>
  (files) =>
    Object.fromEntries(
      Object.entries(files).map(([path, bytes]) => [
        path,
        isPlaylist(path) ? Buffer.from(edit(bytes.toString(), path)) : bytes,
      ]),
    );
const inVideo = (from: string | RegExp, to: string): Edit =>
  inPlaylists((text, path) => (path === VIDEO ? text.replace(from, to) : text));
const beside =
  (path: string): Edit =>
  (files) => ({ ...files, [path]: decoy });
const renamed =
  (from: string, to: string): Edit =>
  (files) =>
    Object.fromEntries(Object.entries(files).map(([path, bytes]) => [path.replaceAll(from, to), bytes]));
const allOf =
  (...edits: Edit[]): Edit =>
  (files) =>
    edits.reduce((edited, edit) => edit(edited), files);
/** Files and the addresses that all playlists have of them get other names. */
const namedBy = (from: string, file: string, address = file): Edit =>
  allOf(
    renamed(from, file),
    inPlaylists((text) => text.replaceAll(from, address)),
  );

/** Media lie below `p/v/`, and the MPD names them by base addresses: one of the period, and one of each representation. */
const inBases = (period: string, representation: string): Edit =>
  allOf(
    namedBy('chunk-', 'p/v/chunk-'),
    namedBy('init-', 'p/v/init-'),
    inPlaylists((text, path) =>
      path === MPD
        ? text
            .replaceAll('p/v/', '')
            .replace(/(<Period[^>]*>)/, `$1<BaseURL>${period}</BaseURL>`)
            .replace(/(<Representation [^>]*>)/g, `$1<BaseURL>${representation}</BaseURL>`)
        : text,
    ),
  );

/** Text in UTF-8 as it is read in another encoding. */
const readIn = (encoding: string, text: string): string => new TextDecoder(encoding).decode(Buffer.from(text));

const NFC = 'é'.normalize('NFC');
const NFD = 'é'.normalize('NFD');

const AMBIGUOUS: Readonly<Record<string, Edit>> = {
  'a file that another differs from by capitals': beside(FIRST.toUpperCase()),
  'a file that another differs from by capitals of several letters': allOf(
    namedBy('chunk-', 'chunk-Straẞe-'),
    beside(FIRST.replace('chunk-', 'chunk-strasse-')),
  ),
  'a file that another differs from by how letters are composed': allOf(
    namedBy('chunk-', `chunk-${NFC}-`),
    beside(FIRST.replace('chunk-', `chunk-${NFD}-`)),
  ),
  'a file with a query and without': inVideo(`URI="${INIT}"`, `URI="${INIT}?v=1"`),
  'a file with two queries': allOf(
    inPlaylists((text) => text.replaceAll('.m4s', '.m4s?v=1')),
    inVideo(`${INIT}?v=1`, `${INIT}?v=2`),
  ),
  'the first part of every object, as stores send it': inPlaylists((text) =>
    text.replaceAll('.m4s', '.m4s?partNumber=1'),
  ),
  'an older version of every object': inPlaylists((text) => text.replaceAll('.m4s', '.m4s?%76ersionId=null')),
  'a file with an encoded letter and without': inVideo(INIT, INIT.replace('s', '%73')),
  'a file below an encoded dot and without': inVideo(INIT, `%2e/${INIT}`),
  'a file out of another folder and without': inVideo(INIT, `other/../${INIT}`),
  'a file with another number of slashes': inVideo(INIT, `.//${INIT}`),
  'an address whose query another file has in its name': allOf(
    inPlaylists((text) => text.replaceAll('.m4s', '.m4s?v=1')),
    beside(`${FIRST}?v=1`),
  ),
  'an encoded name that another file has as it is': allOf(namedBy('chunk-', 'chunk ', 'chunk%20'), (files) => ({
    ...files,
    [FIRST.replace('chunk-', 'chunk%20')]: decoy,
  })),
  'a plus for which some servers find another file': allOf(
    namedBy('chunk-', 'chunk+'),
    beside(FIRST.replace('chunk-', 'chunk ')),
  ),
  'parameters of a path, without which some servers find another file': allOf(
    namedBy('.m4s', '.m4s;a=1'),
    beside(FIRST),
  ),
  'parameters of a path that a file has not': inVideo(FIRST, `${FIRST};a=1`),
  'letters for which players find another file that take a playlist for Latin-1': allOf(
    namedBy('chunk-', `chunk-${NFC}’-`),
    beside(FIRST.replace('chunk-', 'chunk-Ã©â€™-')),
  ),
  ...Object.fromEntries(
    ['windows-1251', 'shift_jis', 'gbk', 'koi8-r'].map((encoding): [string, Edit] => [
      `the same that take it for text in ${encoding}`,
      allOf(namedBy('chunk-', `chunk-${NFC}’-`), beside(FIRST.replace('chunk-', readIn(encoding, `chunk-${NFC}’-`)))),
    ]),
  ),
  'letters in a base address for which they find another folder': allOf(
    inBases('p/', `${NFC}/`),
    inPlaylists((text) => text.replaceAll('p/v/', `p/${encodeURI(NFC)}/`)),
    renamed('p/v/', `p/${NFC}/`),
    beside(`p/${readIn('windows-1251', NFC)}/${FIRST}`),
  ),
  'letters that files compose otherwise': namedBy('chunk-', `chunk-${NFD}-`, `chunk-${NFC}-`),
  'capitals that the name of a file has not': allOf(renamed(FIRST, FIRST.toUpperCase())),
  'an encoded space that a file has as it is written': namedBy('chunk-', 'chunk%20'),
  'a query that a file has in its name': allOf(
    renamed(FIRST, `${FIRST}?v=1`),
    inPlaylists((text) => text.replaceAll('.m4s', '.m4s?v=1')),
  ),
  'a plus for a space in the name of a file': namedBy('chunk-', 'chunk ', 'chunk+'),
  'a base address inside of another one, which some players do not take it to be in': allOf(
    inBases('p/', 'v/'),
    beside(`v/${FIRST}`),
  ),
  'a base address whose encoded form is the name of a folder': allOf(inBases('%70/', 'v/'), beside(`%70/v/${FIRST}`)),
  'a base address whose query is the name of a folder': allOf(inBases('p/v/?a/', './'), beside(`p/v/?a/${FIRST}`)),
  'a base address that names a folder without a slash at its end': allOf(
    inBases('p/v/x', './'),
    beside(`p/v/x/${FIRST}`),
  ),
  'a base address with an identifier of templates, which some players fill': allOf(inBases('$Bandwidth$/', '../p/v/')),
  'a per cent sign that encodes nothing': namedBy('chunk-', 'chunk%-'),
  'two slashes where the folder has one': namedBy('chunk-', 'media/chunk-', 'media//chunk-'),
  'a folder, which servers send a page of': allOf(renamed(FIRST, 'other'), beside(`${FIRST}/index.html`)),
  'a file that a folder differs from by capitals': beside(`${FIRST.toUpperCase()}/index.html`),
  'a file in a folder that another differs from by capitals': allOf(
    namedBy('chunk-', 'media/chunk-'),
    beside(`Media/${FIRST}`),
  ),
};

/** The same of playlists that players are given the address of. */
const AMBIGUOUS_ENTRIES: Readonly<Record<string, Edit>> = {
  'a folder whose name differs by capitals': beside(`${MPD.toUpperCase()}/index.html`),
  'a folder whose name composes letters otherwise': allOf(renamed(MPD, `${NFD}.mpd`), beside(`${NFC}.mpd/index.html`)),
};

const HONEST: Readonly<Record<string, Edit>> = {
  'spaces in names, which all playlists encode': namedBy('chunk-', 'chunk ', 'chunk%20'),
  'spaces in names, which one playlist encodes': allOf(
    namedBy('chunk-', 'chunk '),
    inPlaylists((text, path) => (path === MPD ? text.replaceAll('chunk ', 'chunk%20') : text)),
  ),
  'composed letters with accents': namedBy('chunk-', `chunk-${NFC}-`, encodeURI(`chunk-${NFC}-`)),
  'letters with accents apart, as files have them': namedBy('chunk-', `chunk-${NFD}-`),
  'folders beside files, and of other names': allOf(namedBy('chunk-', 'media/chunk-'), beside('media.old/index.html')),
  'a plus in names': namedBy('chunk-', 'chunk+'),
  'parameters of paths in names': namedBy('.m4s', '.m4s;a=1'),
  'one query on every address': inPlaylists((text) => text.replaceAll('.m4s', '.m4s?v=1')),
  'addresses that begin with a dot': inPlaylists((text, path) =>
    path === VIDEO ? text.replaceAll('chunk-', './chunk-').replaceAll('init-', './init-') : text,
  ),
  'base addresses inside of others': inBases('p/', 'v/'),
  'a base address of the folder itself': inBases('./', 'p/v/'),
  'key frames in the files of the pictures': allOf(
    inPlaylists((text, path) =>
      path === 'master.m3u8' ? `${text}#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="frames.m3u8"\n` : text,
    ),
    (files) => ({
      ...files,
      'frames.m3u8': Buffer.from(
        `#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:1\n#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP:URI="${INIT}"\n#EXTINF:1,\n#EXT-X-BYTERANGE:2000@0\n${FIRST}\n#EXT-X-ENDLIST\n`,
      ),
    }),
  ),
};

for (const [cases, edits] of [
  ['whose playlists name', AMBIGUOUS],
  ['where beside an entry there is', AMBIGUOUS_ENTRIES],
] as const) {
  describe(`a publication is ambiguous, and cannot be signed, ${cases}`, () => {
    for (const [name, edit] of Object.entries(edits)) test(name, () => assertAmbiguous(edit));
  });
}

test('a publication is ambiguous where a file has the name of a variable, also for the entries that are chosen', async () => {
  const files = allOf(
    inVideo('#EXTM3U', '#EXTM3U\n#EXT-X-DEFINE:NAME="v",VALUE="chunk"'),
    inVideo(FIRST, FIRST.replace('chunk', '{$v}')),
  )(signed);
  const verified = async (beside: Files, params: object): Promise<string> => {
    const folder = writeFiles(join(home, `case-${count++}`, 'show'), { ...files, ...beside });
    const input = { type: 'local_folder_path', path: folder } as const;
    return (await verifyInput(input, join(folder, '..'), { params })).verification.state;
  };
  const literal = { [FIRST.replace('chunk', '{$v}')]: decoy };
  for (const params of [{}, { entries: ['master.m3u8'] }]) {
    assert.equal(await verified({}, params), 'valid');
    assert.equal(await verified(literal, params), 'invalid', JSON.stringify(params));
  }
});

test('a publication is ambiguous, and cannot be signed, whose playlists name a host in capitals and in small letters', async () => {
  const files = inVideo(INIT, `${HOST.replace('media', 'MEDIA')}${INIT}`)(signed);
  await assert.rejects(readPublication(folderOf(files, HOST), patterns, signal), isAmbiguous);
});

async function assertAmbiguous(edit: Edit): Promise<void> {
  const files = edit(signed);
  const folder = writeFiles(join(home, `case-${count++}`, 'show'), files);
  const { verification } = await verifyInput({ type: 'local_folder_path', path: folder }, join(folder, '..'));
  const { state, summary, publication } = verification;
  assert.equal(state, 'invalid', JSON.stringify({ summary, publication }));
  const found = publication?.first.filter(({ kind, part }) => kind === 'ambiguous' && part === 'playlist') ?? [];
  assert.ok(found.length > 0, JSON.stringify({ summary, publication }));
  assert.ok(
    found.every(({ file, line, problem }) => isPlaylist(file ?? '') && (line ?? 0) > 0 && problem !== undefined),
    JSON.stringify(found),
  );
  assert.doesNotMatch(JSON.stringify(found), /v=\d[^.]*server/);
  await assert.rejects(readPublication(folderOf(files), patterns, signal), isAmbiguous);
}

function isAmbiguous(error: unknown): boolean {
  return error instanceof AppError && error.reason === 'PLAYLIST_AMBIGUOUS';
}

describe('a publication is valid, and can be signed, whose playlists have', () => {
  for (const [name, edit] of Object.entries(HONEST)) {
    test(name, async () => {
      const files = edit(signed);
      const folder = writeFiles(join(home, `case-${count++}`, 'show'), files);
      const { verification } = await verifyInput({ type: 'local_folder_path', path: folder }, join(folder, '..'));
      const { state, summary, publication } = verification;
      assert.equal(state, 'valid', JSON.stringify({ summary, publication }));
      await readPublication(folderOf(files), patterns, signal);
    });
  }

  test('absolute addresses and relative ones', async () => {
    const files = inVideo(INIT, `${HOST}${INIT}`)(signed);
    await readPublication(folderOf(files, HOST), patterns, signal);
  });

  test('two addresses of a file, where one of the playlists is not chosen', async () => {
    const files = inVideo(`URI="${INIT}"`, `URI="${INIT}?v=1"`)(signed);
    const folder = writeFiles(join(home, `case-${count++}`, 'show'), files);
    const asked = { params: { entries: ['master.m3u8'] } };
    const { verification } = await verifyInput({ type: 'local_folder_path', path: folder }, join(folder, '..'), asked);
    assert.equal(verification.state, 'valid', JSON.stringify(verification.publication));
  });
});
