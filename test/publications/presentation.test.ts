import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { placeholderWholeHash } from '#formats/hard-binding.ts';
import type { LateAssertion } from '#provenance/manifest-request.ts';
import {
  type ComparedPlaylist,
  comparePresentation,
  signedPathsAmong,
} from '#publications/presentation/compare-presentation.ts';
import {
  digestOfFiles,
  digestOfList,
  type HashedFile,
  listPlaylists,
  PRESENTATION_LABEL,
  presentationAssertion,
  presentationOf,
} from '#publications/presentation/presentation.ts';
import { readPresentation } from '#publications/presentation/stored-presentation.ts';
import { requestWith, signWav, testAuthor } from '../support/manifests/sign-wav.ts';

const { signal } = new AbortController();

function sha256(bytes: string | Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

function file(path: string, content = path): HashedFile {
  return { path, sizeBytes: content.length, digest: sha256(content) };
}

function playlist(path: string, { content = path, named = [] as HashedFile[] } = {}): ComparedPlaylist {
  return {
    ...file(path, content),
    named,
    isEntry: path.endsWith('master.m3u8'),
    names: [],
    isHlsMedia: !path.includes('master'),
  };
}

const MASTER = playlist('master.m3u8', { named: [file('poster.jpg')] });
const VIDEO = playlist('video/index.m3u8');
const TEXT = playlist('text/index.m3u8', { named: [file('text/1.vtt'), file('text/2.vtt')] });
const ALL = [MASTER, VIDEO, TEXT];
const SIGNED = presentationOf(listPlaylists(ALL), true);

const compare = (playlists: readonly ComparedPlaylist[], others: readonly string[] = []) =>
  comparePresentation(SIGNED, playlists, others);

/** Returns playlists as they lie in another folder. */
function moved(playlists: readonly ComparedPlaylist[], move: (path: string) => string): ComparedPlaylist[] {
  return playlists.map((each) => ({
    ...each,
    path: move(each.path),
    named: each.named.map((named) => ({ ...named, path: move(named.path) })),
  }));
}

describe('a presentation', () => {
  test('lists playlists by path, with their sizes and digests', () => {
    assert.ok('uris' in SIGNED);
    assert.deepEqual(
      SIGNED.uris.map(({ uri, size, hash, files }) => [uri, size, hash, files !== undefined]),
      ['master.m3u8', 'text/index.m3u8', 'video/index.m3u8'].map((path) => [
        path,
        path.length,
        sha256(path).toString('base64'),
        !path.startsWith('video'),
      ]),
    );
  });

  test('hashes the positions of fragments as CBOR that is written out here, where a playlist names a part of them', () => {
    const fragment = (location: number) => ({ uniqueId: 1, localId: 2, location, count: 3 });
    const signed = (...locations: number[]) =>
      listPlaylists([{ ...playlist('a.m3u8'), fragments: locations.map(fragment) }]);
    assert.equal(signed(0, 1, 2).uris[0]?.fragments, undefined);
    const digest = sha256(Buffer.from('828301020183010202', 'hex')).toString('base64');
    assert.equal(signed(1, 2).uris[0]?.fragments, digest);
    const ofList = Buffer.concat([Buffer.from('818266', 'hex'), Buffer.from('a.m3u8'), Buffer.from('5820', 'hex')]);
    const ofDigest = sha256(Buffer.concat([ofList, Buffer.from(digest, 'base64')])).toString('base64');
    assert.equal(digestOfList(signed(1, 2)).fragments, ofDigest);
    assert.equal(digestOfList(signed(0, 1, 2)).fragments, undefined);
    const none = sha256(Buffer.from('80', 'hex')).toString('base64');
    const init = { path: 'init.mp4', uniqueId: 1, localId: 2, count: 3 };
    const [alone] = listPlaylists([{ ...playlist('a.m3u8'), named: [init], fragments: [] }]).uris;
    assert.equal(alone?.fragments, none, 'all fragments of an init segment that is named are left out');
  });

  test('hashes named files as CBOR that is written out here', () => {
    const name = Buffer.from('a.jpg');
    const row = Buffer.concat([Buffer.from('8365', 'hex'), name, Buffer.from('1903e85820', 'hex'), sha256('a')]);
    const files = [{ path: 'a.jpg', sizeBytes: 1000, digest: sha256('a') }];
    assert.deepEqual(Buffer.from(digestOfFiles(files)), sha256(Buffer.concat([Buffer.from('81', 'hex'), row])));
  });

  test('hashes its list as CBOR that is written out here, where it is long', () => {
    const row = Buffer.concat([Buffer.from('8468', 'hex'), Buffer.from('a/b.m3u8'), Buffer.from('085820', 'hex')]);
    const cbor = Buffer.concat([Buffer.from('81', 'hex'), row, sha256('a/b.m3u8'), Buffer.from('f6', 'hex')]);
    const list = listPlaylists([playlist('a/b.m3u8')]);
    assert.deepEqual(presentationOf(list, false), { count: 1, hash: sha256(cbor).toString('base64') });
    const many = listPlaylists(Array.from({ length: 200 }, (_, index) => playlist(`v/${index}.m3u8`)));
    assert.deepEqual(presentationOf(many, true), digestOfList(many));
  });

  test('has no difference to the folder that was signed, or one above or below it', () => {
    const nested = presentationOf(listPlaylists(moved(ALL, (path) => `hls/${path}`)), true);
    assert.deepEqual(compare(ALL), { differences: [], absent: [] });
    assert.deepEqual(compare(moved(ALL, (path) => `site/news/${path}`)), { differences: [], absent: [] });
    assert.deepEqual(comparePresentation(nested, ALL, []), { differences: [], absent: [] });
    for (const move of [(path: string) => path, (path: string) => `site/${path}`]) {
      assert.deepEqual(comparePresentation(presentationOf(listPlaylists(ALL), false), moved(ALL, move), []), {
        differences: [],
        absent: [],
      });
    }
  });

  test('differs where a playlist is not there that one names', () => {
    const naming = { ...MASTER, names: ['video/index.m3u8', 'text/index.m3u8'] };
    const missing = { part: 'playlist', kind: 'missing', playlist: 'text/index.m3u8' };
    assert.deepEqual(compare([naming, VIDEO]), { differences: [missing], absent: [] });
    assert.deepEqual(compare([MASTER, VIDEO]), { differences: [], absent: ['text/index.m3u8'] });
  });

  test('differs where a playlist is another, or new, or names another file', () => {
    const others: [ComparedPlaylist, string, string][] = [
      [{ ...VIDEO, digest: sha256('other') }, 'playlist', 'altered'],
      [{ ...VIDEO, path: 'video/other.m3u8' }, 'playlist', 'added'],
      [{ ...TEXT, named: [file('text/1.vtt')] }, 'files', 'altered'],
      [{ ...TEXT, named: TEXT.named.toReversed() }, 'files', 'altered'],
      [{ ...TEXT, named: [file('text/1.vtt'), file('text/2.vtt', 'other')] }, 'files', 'altered'],
      [{ ...VIDEO, named: [file('added.jpg')] }, 'files', 'altered'],
    ];
    for (const [other, part, kind] of others) {
      const { differences } = compare([MASTER, other]);
      assert.deepEqual(differences, [{ part, kind, playlist: other.path }]);
      const [difference] = comparePresentation(
        presentationOf(listPlaylists(ALL), false),
        [MASTER, other],
        [],
      ).differences;
      assert.deepEqual(difference, { part: 'playlist', kind: 'unreadable', playlist: null });
    }
  });

  test('differs where a playlist of other media stands at the path of a signed one, and no other one of them counts', () => {
    const ofAnother = (path: string): ComparedPlaylist => ({
      ...playlist(path, { content: 'other' }),
      isOfAnother: true,
    });
    const altered = { part: 'playlist', kind: 'altered', playlist: 'master.m3u8' };
    for (const others of [[], [ofAnother('other.m3u8')]]) {
      assert.deepEqual(compare([VIDEO, TEXT, ofAnother('master.m3u8'), ...others]).differences, [altered]);
      assert.deepEqual(compare([...ALL, ...others]).differences, []);
    }
    const [here] = moved([ofAnother('master.m3u8')], (path) => `site/${path}`);
    const inSite = moved([VIDEO, TEXT], (path) => `site/${path}`);
    assert.ok(here !== undefined);
    assert.deepEqual(compare([...inSite, here]).differences, [{ ...altered, playlist: here.path }]);
    assert.deepEqual(signedPathsAmong(SIGNED, inSite, [here.path, 'site/other.m3u8', 'master.m3u8/x']), [here.path]);
  });

  test('tells what is not there, and differs where a folder has its name, or a media playlist stands alone for it', () => {
    assert.deepEqual(compare([MASTER, VIDEO]), { differences: [], absent: ['text/index.m3u8'] });
    assert.deepEqual(compare([MASTER, VIDEO], ['text/index.m3u8']), { differences: [], absent: [] });
    for (const name of ['text/index.m3u8/', 'TEXT/Index.m3u8/', 'TEXT/Index.m3u8']) {
      const replaced = { part: 'playlist', kind: 'altered', playlist: 'text/index.m3u8' };
      assert.deepEqual(compare([MASTER, VIDEO], [name]), { differences: [replaced], absent: [] });
    }
    const alone = { ...VIDEO, isEntry: true };
    assert.deepEqual(compare([alone, TEXT]).differences, [
      { part: 'playlist', kind: 'missing', playlist: 'master.m3u8' },
    ]);
  });
});

/** Signs a manifest with an assertion as the service makes it. */
async function manifestWith(late: readonly LateAssertion[]): Promise<Buffer> {
  const draft = await testAuthor().draft(requestWith({}), signal);
  await draft.measure([placeholderWholeHash(), ...late], signal);
  return Buffer.from((await draft.sign([placeholderWholeHash(), ...late], signal)).manifest);
}

describe('a presentation in a manifest', () => {
  test('is read as it was signed, as a list and as a digest', async () => {
    for (const presentation of [SIGNED, digestOfList(listPlaylists(ALL))]) {
      const read = readPresentation(await manifestWith([presentationAssertion(presentation)]));
      const { version, alg, ...content } = read as typeof presentation & { version: number; alg: string };
      assert.deepEqual([version, alg, content], [1, 'sha256', presentation]);
    }
    assert.equal(readPresentation(await manifestWith([])), null);
  });

  test('does not count where a caller states it', async () => {
    const { data } = presentationAssertion(SIGNED);
    const { manifest } = await signWav(testAuthor(), { assertions: [{ label: PRESENTATION_LABEL, data }] });
    assert.equal(readPresentation(Buffer.from(manifest)), null);
  });

  test('is no presentation where it is malformed, of a later version, or there twice', async () => {
    const entry = { uri: 'a.m3u8', size: 1, hash: sha256('a').toString('base64') };
    const common = { version: 1, alg: 'sha256' };
    const malformed = [
      { ...common },
      { ...common, version: 0, uris: [entry] },
      { ...common, alg: 'md5', uris: [entry] },
      { ...common, uris: [entry, entry] },
      { ...common, uris: [{ ...entry, hash: 'AAAA' }] },
      { ...common, uris: [{ ...entry, more: 1 }] },
      ...['../a.m3u8', '/a.m3u8', 'a//b.m3u8', './a.m3u8', '', 'e\u0301.m3u8'].map((uri) => ({
        ...common,
        uris: [{ ...entry, uri }],
      })),
      { ...common, uris: Array.from({ length: 100_000 }, (_, index) => ({ ...entry, uri: `${index}.m3u8` })) },
    ];
    for (const data of malformed) {
      const read = readPresentation(await manifestWith([{ label: PRESENTATION_LABEL, data }]));
      assert.ok(read !== null && 'problem' in read && !read.isLater, JSON.stringify(data).slice(0, 100));
    }
    const later = readPresentation(
      await manifestWith([{ label: PRESENTATION_LABEL, data: { version: 2, tree: 'other' } }]),
    );
    assert.ok(later !== null && 'problem' in later && later.isLater);
    const twice = readPresentation(await manifestWith([presentationAssertion(SIGNED), presentationAssertion(SIGNED)]));
    assert.ok(twice !== null && 'problem' in twice);
  });
});
