import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { makeFilm } from '../support/media/make-film.ts';
import { makeFfmpegDash } from '../support/publications/make-publication.ts';
import { startNginx } from '../support/servers/nginx.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { s3Settings } from './s3-settings.ts';
import {
  AS_SIGNED,
  copyOf,
  PATTERNS,
  rewrite,
  SAMPLE,
  signFolder,
  textAt,
  told,
  verifyFolder,
} from './signed-folders.ts';

const SUBTITLES = '1\n00:00:00,500 --> 00:00:02,000\nNo decision was taken.\n';

const folder = temporaryFolder();
let s3: TestS3;
let bucket: string;
let service: RunningService;
/** A publication of HLS and DASH with subtitles, packaged and signed by the service. */
let packaged: string;
/** A publication whose playlist names pictures and text, signed by the service. */
let carried: string;

before(async () => {
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  service = await startService({ folder: join(folder, 'service'), settings: s3Settings(s3, bucket) });
  const media = join(folder, 'evening');
  mkdirSync(media);
  makeFilm(media, 'film.mp4');
  writeFileSync(join(media, 'film.en.srt'), SUBTITLES);
  packaged = await sign('/v2/sync/c2pa/package', media, { segment_duration: 2 });
  const sample = join(folder, 'sample');
  cpSync(SAMPLE, sample, { recursive: true });
  writeFileSync(join(sample, 'poster.jpg'), Buffer.from('ffd8ffe000104a464946', 'hex'));
  const named = '#EXT-X-SESSION-DATA:DATA-ID="com.example.poster",URI="poster.jpg"\n';
  writeFileSync(join(sample, 'master.m3u8'), textAt(sample, 'master.m3u8').replace('#EXTM3U\n', `#EXTM3U\n${named}`));
  carried = await sign('/v2/sync/c2pa/fragmented', sample, PATTERNS);
});
after(async () => {
  await service?.stop();
  await s3?.close();
});

const sign = (path: string, input: string, params: object, output?: object) =>
  signFolder(service, path, input, params, output);
const verify = (path: string, params: object = {}) => verifyFolder(service, path, params);

function nameOf(root: string, ending: RegExp): string {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' });
  return names.find((name) => ending.test(name)) ?? assert.fail(String(ending));
}

describe('the presentation of a publication', () => {
  test('is as it was signed, packaged or carried', async () => {
    for (const root of [packaged, carried]) {
      const verification = await verify(root);
      assert.deepEqual(told(verification), { state: 'valid', presentation: 'as_signed', first: [] });
      assert.ok(verification.summary.startsWith(AS_SIGNED), verification.summary);
    }
  });

  test('is as it was signed to S3, and as it is read from there and over HTTP, listed or not', async (t) => {
    const media = join(folder, 'evening');
    const output = { type: 's3', bucket, prefix: 'out' };
    const inS3 = await sign('/v2/sync/c2pa/package', media, { segment_duration: 2 }, output);
    const nginx = await startNginx(packaged);
    t.after(() => nginx.stop());
    for (const address of [
      `${inS3}/`,
      `${nginx.base}/json/`,
      `${nginx.base}/plain/master.m3u8`,
      `${nginx.base}/plain/manifest.mpd`,
    ]) {
      const verification = await verify(address);
      assert.deepEqual(told(verification), { state: 'valid', presentation: 'as_signed', first: [] }, address);
    }
  });

  test('is changed where a page in the folder stands in place of its listing, and leaves a playlist out', async (t) => {
    const root = copyOf(packaged, (copy) => {
      const names = readdirSync(copy, { withFileTypes: true })
        .map((entry) => `${entry.name}${entry.isDirectory() ? '/' : ''}`)
        .filter((name) => name !== 'manifest.mpd');
      const sizeOf = (name: string): string | number => (name.endsWith('/') ? '-' : statSync(join(copy, name)).size);
      const links = names.map((name) => `<a href="${name}">${name}</a>  27-Nov-2026 10:00  ${sizeOf(name)}\n`).join('');
      const title = 'Index of /html/';
      const page = `<html><head><title>${title}</title></head><body><h1>${title}</h1><pre>${links}</pre></body></html>`;
      writeFileSync(join(copy, 'index.html'), page);
    });
    const nginx = await startNginx(root);
    t.after(() => nginx.stop());
    const verification = await verify(`${nginx.base}/html/`);
    assert.deepEqual([verification.state, verification.publication?.presentation], ['invalid', 'changed']);
    const unlisted = verification.publication?.first.filter(({ kind }) => kind === 'unreadable');
    assert.deepEqual(
      unlisted?.map(({ part, file }) => [part, file]),
      [['playlist', 'manifest.mpd']],
    );
  });

  test('is changed where a folder has the name of a signed playlist, on disk and over HTTP', async (t) => {
    const root = join(
      copyOf(packaged, () => undefined),
      '..',
      'above',
    );
    cpSync(packaged, join(root, 'show'), { recursive: true });
    for (const path of ['manifest.mpd', 'Manifest.MPD']) {
      rmSync(join(root, 'show', 'manifest.mpd'), { recursive: true, force: true });
      mkdirSync(join(root, 'show', path), { recursive: true });
      writeFileSync(join(root, 'show', path, 'index.txt'), textAt(packaged, 'manifest.mpd'));
      const nginx = await startNginx(root);
      t.after(() => nginx.stop());
      for (const address of [root, join(root, 'show'), `${nginx.base}/json/show/`]) {
        const { state, publication } = await verify(address);
        assert.deepEqual([state, publication?.presentation], ['invalid', 'changed'], address);
        const first = publication?.first.filter(({ kind, part }) => kind === 'altered' && part === 'playlist');
        assert.deepEqual(
          first?.map(({ file }) => file),
          ['manifest.mpd'],
          address,
        );
      }
    }
  });

  test('is not asked for where a folder lists a page that is media', async (t) => {
    const root = copyOf(packaged, (copy) => {
      mkdirSync(join(copy, 'other'));
      writeFileSync(join(copy, 'other', 'index.html'), '\0\0\0\x30free<title>Index of /html/other/</title>\0');
    });
    const nginx = await startNginx(root);
    t.after(() => nginx.stop());
    const inputs = [{ type: 'remote_folder_url', url: `${nginx.base}/html/` }];
    const { results } = await service.runSync('/v2/sync/verify', { inputs });
    assert.equal(results[0]?.error_details?.reason, 'FOLDER_NOT_LISTED', JSON.stringify(results[0]));
  });

  test('is changed where subtitles are rewritten, and the playlist that names them is told', async () => {
    const root = copyOf(packaged, (copy) => {
      rewrite(copy, nameOf(copy, /\.vtt$/), (text) => text.replace('No decision', 'A decision'));
    });
    const verification = await verify(root);
    const playlist = nameOf(root, /text.*index\.m3u8$/);
    const first = [{ kind: 'altered', part: 'files', file: playlist }];
    assert.deepEqual(told(verification), { state: 'invalid', presentation: 'changed', first });
    assert.match(verification.summary, /^Not as signed: files that ".*" names were changed\..*"equivalent"/);
  });

  test('is changed where a picture is replaced', async () => {
    const root = copyOf(carried, (copy) => writeFileSync(join(copy, 'poster.jpg'), 'another'));
    const { state, publication } = await verify(root);
    assert.deepEqual([state, publication?.presentation], ['invalid', 'changed']);
  });

  test('is changed where a playlist is, and equivalent to those who ask for that', async () => {
    const root = copyOf(packaged, (copy) => {
      rewrite(copy, 'master.m3u8', (text) => text.replaceAll('LANGUAGE="', 'LANGUAGE="x-'));
    });
    const first = [{ kind: 'altered', part: 'playlist', file: 'master.m3u8' }];
    assert.deepEqual(told(await verify(root)), { state: 'invalid', presentation: 'changed', first });
    const verification = await verify(root, { presentation: 'equivalent' });
    assert.deepEqual(told(verification), { state: 'valid', presentation: 'equivalent', first: [] });
    assert.match(
      verification.summary,
      /^Every signed fragment of what "manifest\.mpd" and "master\.m3u8" offer plays once/,
    );
    assert.match(verification.summary, /The playlists are not the signed ones: names, languages, text/);
  });

  test('is changed where a playlist was added, whether it can be read or not', async () => {
    for (const text of ['#EXTM3U\n#EXTINF:1,\nother.ts\n', 'nothing of the kind']) {
      const root = copyOf(packaged, (copy) => writeFileSync(join(copy, 'added.m3u8'), text));
      const { publication, state } = await verify(root);
      assert.deepEqual([state, publication?.presentation], ['invalid', 'changed']);
      assert.ok(publication?.first.some(({ kind, file }) => kind === 'added' && file === 'added.m3u8'));
    }
  });

  test('is as it was signed where HLS is published without its DASH, which is told', async () => {
    const verification = await verify(copyOf(packaged, (copy) => rmSync(join(copy, 'manifest.mpd'))));
    assert.deepEqual([verification.state, verification.publication?.presentation], ['valid', 'as_signed']);
    assert.deepEqual(verification.publication?.playlists_absent, ['manifest.mpd']);
  });

  test('is changed where media playlists stand alone that another one named', async () => {
    const { publication, state } = await verify(copyOf(packaged, (copy) => rmSync(join(copy, 'master.m3u8'))));
    assert.deepEqual([state, publication?.presentation], ['invalid', 'changed']);
    assert.ok(publication?.first.some(({ kind, file }) => kind === 'missing' && file === 'master.m3u8'));
  });

  test('is found where the folder lies one above that which was signed', async () => {
    const root = join(temporaryFolder(), 'site');
    cpSync(packaged, join(root, 'news/evening'), { recursive: true });
    assert.deepEqual(told(await verify(root)), { state: 'valid', presentation: 'as_signed', first: [] });
  });

  test('covers playlists with other names than usual, hidden ones, and the files that any address leads to', async () => {
    const sample = copyOf(SAMPLE, (copy) => {
      const [first = '', second = ''] = readdirSync(copy).filter((name) => /^(?!master).*\.m3u8$/.test(name));
      renameSync(join(copy, first), join(copy, 'first.txt'));
      renameSync(join(copy, second), join(copy, '.second.m3u8'));
      const assets = '#EXT-X-DATERANGE:ID="a",START-DATE="2020-01-01T00:00:00Z",X-ASSET-LIST="assets.json"\n';
      rewrite(copy, 'master.m3u8', (text) => text.replace(first, 'first.txt?x=1').replace(second, '.second.m3u8'));
      rewrite(copy, 'first.txt', (text) => text.replace('#EXTM3U\n', `#EXTM3U\n${assets}`));
      rewrite(copy, 'manifest.mpd', (text) =>
        text.replace(
          '<AdaptationSet',
          '<EventStream schemeIdUri="urn:example"><Event>event.json</Event></EventStream><AdaptationSet',
        ),
      );
      for (const name of ['assets.json', 'event.json']) writeFileSync(join(copy, name), '{}');
    });
    const published = await sign('/v2/sync/c2pa/fragmented', sample, PATTERNS);
    const { state, publication } = await verify(published);
    assert.deepEqual([state, publication?.presentation], ['valid', 'as_signed'], JSON.stringify(publication));
    const entries = { entries: ['master.m3u8'] };
    assert.equal((await verify(published, entries)).publication?.presentation, 'as_signed');
    const changes = [
      ['first.txt', 'first.txt', 'playlist'],
      ['.second.m3u8', '.second.m3u8', 'playlist'],
      ['assets.json', 'first.txt', 'files'],
      ['event.json', 'manifest.mpd', 'files'],
    ] as const;
    for (const [path, file, part] of changes) {
      const verification = await verify(copyOf(published, (copy) => rewrite(copy, path, (text) => `${text}\n`)));
      const first = [{ kind: 'altered', part, file }];
      assert.deepEqual(
        {
          ...told(verification),
          first: verification.publication?.first
            .filter((each) => each.kind === 'altered')
            .map(({ kind, part, file }) => ({ kind, part, file })),
        },
        { state: 'invalid', presentation: 'changed', first },
        path,
      );
    }
  });

  test('is limited to the entries that are asked for', async () => {
    const root = copyOf(packaged, (copy) => rewrite(copy, 'manifest.mpd', (text) => `${text}\n`));
    assert.equal((await verify(root)).publication?.presentation, 'changed');
    assert.equal((await verify(root, { entries: ['*.m3u8'] })).publication?.presentation, 'as_signed');
    assert.equal((await verify(root, { entries: ['manifest.mpd'] })).publication?.presentation, 'changed');
    const { results } = await service.runSync('/v2/sync/verify', {
      inputs: [{ type: 'local_folder_path', path: root }],
      params: { entries: ['none.mpd'] },
    });
    assert.equal(results[0]?.error_details?.reason, 'PATTERN_NO_MATCH');
  });

  test('is changed where two signed renditions stand at the paths of each other', async () => {
    const root = copyOf(packaged, (copy) => {
      const [first = '', second = ''] = readdirSync(join(copy, 'audio')).map((name) => join(copy, 'audio', name));
      assert.ok(first !== '' && second !== '');
      renameSync(first, `${first}-moved`);
      renameSync(second, first);
      renameSync(`${first}-moved`, second);
    });
    const { state, publication } = await verify(root);
    assert.deepEqual([state, publication?.presentation], ['invalid', 'changed']);
  });

  test('is changed where other signed fragments stand at the paths of those that a short version names', async () => {
    const sample = copyOf(SAMPLE, (copy) => {
      const shortened = (text: string) => text.replace(/#EXTINF[^#]*#EXT-X-PROGRAM[^#]*-[23]\.m4s\n/g, '');
      for (const name of ['media_0.m3u8', 'media_1.m3u8'])
        writeFileSync(join(copy, `short_${name}`), shortened(textAt(copy, name)));
      writeFileSync(join(copy, 'short.m3u8'), textAt(copy, 'master.m3u8').replaceAll('media_', 'short_media_'));
    });
    const signed = await sign('/v2/sync/c2pa/fragmented', sample, PATTERNS);
    const params = { entries: ['short.m3u8'] };
    const { state, publication } = await verify(signed, params);
    assert.deepEqual([state, publication?.presentation], ['valid', 'as_signed']);
    const other = copyOf(signed, (copy) => {
      for (const kind of [0, 1]) cpSync(join(copy, `fragment-${kind}-2.m4s`), join(copy, `fragment-${kind}-1.m4s`));
    });
    const changed = (await verify(other, params)).publication;
    assert.equal(changed?.presentation, 'changed');
    const files = changed.first
      .filter(({ part }) => part === 'files')
      .map(({ file }) => file)
      .sort();
    assert.deepEqual(files, ['short_media_0.m3u8', 'short_media_1.m3u8']);
  });

  test('is found for each of two programmes whose playlists have the same bytes', async () => {
    const films = join(temporaryFolder(), 'films');
    for (const language of ['de', 'en']) cpSync(SAMPLE, join(films, language), { recursive: true });
    const signed = await sign('/v2/sync/c2pa/fragmented', films, PATTERNS);
    for (const language of ['de', 'en']) {
      const verification = await verify(join(signed, language));
      assert.deepEqual(told(verification), { state: 'valid', presentation: 'as_signed', first: [] }, language);
    }
  });

  test('is changed by an entry that nobody signed, beside several publications', async () => {
    const root = join(temporaryFolder(), 'site');
    cpSync(packaged, join(root, 'first'), { recursive: true });
    cpSync(carried, join(root, 'second'), { recursive: true });
    assert.deepEqual(told(await verify(root)), { state: 'valid', presentation: 'as_signed', first: [] });
    const other = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nother.ts\n#EXT-X-ENDLIST\n';
    writeFileSync(join(root, 'first', 'breaking.m3u8'), other);
    writeFileSync(join(root, 'first', 'other.ts'), Buffer.alloc(188));
    const { state, publication } = await verify(root);
    assert.deepEqual([state, publication?.presentation], ['invalid', 'changed']);
  });

  test('is changed where a playlist of another publication stands in place of a signed one', async () => {
    const root = copyOf(packaged, (copy) => {
      const names = readdirSync(copy, { recursive: true, encoding: 'utf8' });
      for (const name of names) if (name.endsWith('.m3u8')) rmSync(join(copy, name));
      cpSync(carried, copy, { recursive: true, filter: (path) => !path.endsWith('.mpd') });
    });
    for (const [address, params] of [
      [root],
      [join(root, '..')],
      [root, { entries: ['*.mpd', 'master.m3u8'] }],
    ] as const) {
      const { state, publication } = await verify(address, params);
      assert.deepEqual([state, publication?.presentation], ['invalid', 'changed'], address);
      assert.equal(publication?.first.find(({ kind }) => kind === 'altered')?.part, 'playlist');
    }
  });

  test('is that of the last signature where a folder is signed publication by publication', async () => {
    const flat = join(temporaryFolder(), 'flat');
    for (const name of ['first', 'second']) {
      cpSync(SAMPLE, flat, { recursive: true, filter: (path) => !path.endsWith('.mpd') });
      const named = (text: string) => text.replace(/(?=(?:init|fragment|media)[-_])/g, `${name}-`);
      for (const file of readdirSync(flat).filter((each) => /^(?:init|fragment|media|master)/.test(each))) {
        if (file.endsWith('.m3u8')) rewrite(flat, file, named);
        renameSync(join(flat, file), join(flat, `${name}-${file}`));
      }
    }
    const patterns = (name: string) =>
      Object.fromEntries(Object.entries(PATTERNS).map(([key, pattern]) => [key, `${name}-${pattern}`]));
    const once = await sign('/v2/sync/c2pa/fragmented', flat, patterns('first'));
    const output = { type: 'local', name: 'twice' };
    const twice = await sign('/v2/sync/c2pa/fragmented', once, patterns('second'), output);
    assert.deepEqual(told(await verify(twice)), { state: 'valid', presentation: 'as_signed', first: [] });
    rewrite(twice, 'first-media_0.m3u8', (text) => `${text}# changed\n`);
    assert.equal((await verify(twice)).publication?.presentation, 'changed');
  });

  test('does not make up for media that were altered', async () => {
    const root = copyOf(packaged, (copy) => {
      const path = join(copy, nameOf(copy, /video.*\.m4s$/));
      const bytes = readFileSync(path);
      bytes.writeUInt8((bytes.at(-20) ?? 0) ^ 1, bytes.length - 20);
      writeFileSync(path, bytes);
    });
    const { state, publication } = await verify(root);
    assert.deepEqual([state, publication?.presentation], ['invalid', 'as_signed']);
    assert.deepEqual(publication?.deviations, { altered: 1 });
  });

  test('does not make up for a file that some players count among the signed segments', async () => {
    const source = makeFfmpegDash(makeFilm(folder), join(folder, 'averaged'), '-seg_duration 1 -use_timeline 0');
    const params = { playlist_pattern: '*.mpd', init_pattern: 'init*', frag_pattern: 'chunk*' };
    const signed = await sign('/v2/sync/c2pa/fragmented', source, params);
    assert.deepEqual(told(await verify(signed)), { state: 'valid', presentation: 'as_signed', first: [] });
    const root = copyOf(signed, (copy) =>
      cpSync(join(copy, 'chunk-stream1-00002.m4s'), join(copy, 'chunk-stream0-00009.m4s')),
    );
    const { state, publication } = await verify(root);
    assert.deepEqual([state, publication?.presentation], ['invalid', 'as_signed']);
    assert.deepEqual(publication?.deviations, { ambiguous: 1 });
  });

  test('cannot be stated by a request', async () => {
    for (const label of ['com.attestream.presentation', 'COM.Attestream.other']) {
      const asked = service.submit('/v2/c2pa/fragmented', {
        inputs: [{ type: 'local_folder_path', path: SAMPLE }],
        params: { ...PATTERNS, assertions: [{ label, data: {} }] },
      });
      await assert.rejects(asked, /made by the service alone/);
    }
  });
});
