import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { PublicationDeviation, Verification } from '#contract/verification.ts';
import type { Rendition } from '#publications/media-part.ts';
import { readPublication } from '#publications/read-publication.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { filesAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Asked, verifyInput } from '../support/verification/verify-input.ts';

const { signal } = new AbortController();
const home = temporaryFolder();
type Files = Readonly<Record<string, Uint8Array>>;

/** DASH and HLS over the same fragments of a second each, unsigned. */
const files = Object.fromEntries(
  Object.entries(filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash')))).map(([path, bytes]) => [
    path,
    Buffer.from(bytes),
  ]),
);
const patterns = { playlist: '*.mpd', init: '*init*', frag: '*chunk*' };
const { renditions } = await readPublication(folderOf(files), patterns, signal);
const [video, audio] = renditions as [Rendition, Rendition];
const signed: Files = await signAsOthers(files, renditions, { levels: 1 });
const paths = video.fragments.map(({ path }) => path);
const [first, second, third, fourth] = paths as [string, string, string, string];
let count = 0;

async function verified(publication: Files, asked?: Asked): Promise<Verification> {
  const folder = writeFiles(join(home, `case-${count++}`, 'show'), publication);
  const input = { type: 'local_folder_path', path: folder } as const;
  return (await verifyInput(input, join(folder, '..'), asked)).verification;
}

function without(publication: Files, ...removed: readonly string[]): Files {
  return Object.fromEntries(Object.entries(publication).filter(([path]) => !removed.includes(path)));
}

function bytesOf(path: string): Buffer {
  return Buffer.from(signed[path] as Uint8Array);
}

function flipped(path: string): Buffer {
  const changed = bytesOf(path);
  changed.writeUInt8((changed.at(-9) as number) ^ 1, changed.length - 9);
  return changed;
}

/** The deviations of an invalid publication, as far as they say what is wrong and where. */
async function deviations(publication: Files): Promise<Partial<PublicationDeviation>[]> {
  const { state, publication: compared } = await verified(publication);
  assert.equal(state, 'invalid');
  return (compared?.first ?? []).map(({ kind, part, file, index, signed_index, time_seconds }) =>
    Object.fromEntries(
      Object.entries({ kind, part, file, index, signed_index, time_seconds }).filter(
        ([, value]) => value !== undefined,
      ),
    ),
  );
}

const EXCHANGED = { [second]: bytesOf(third), [third]: bytesOf(second) };

describe('the verdict on a publication', () => {
  test('is that all of it is unchanged', async () => {
    const { state, publication, manifests } = await verified(signed);
    const total = video.fragments.length + audio.fragments.length;
    assert.deepEqual([state, manifests.length], ['valid', 1]);
    const { first: none, ...counts } = publication ?? { first: null };
    assert.deepEqual(none, []);
    assert.deepEqual(counts, {
      presentation: 'not_signed',
      entries: ['manifest.mpd', 'master.m3u8'],
      renditions: 2,
      fragments: total,
      intact: total,
      read_officially: total,
      deviations: {},
    });
  });

  test('is that there is no information, where it was never signed', async () => {
    const { state, publication } = await verified(files);
    assert.deepEqual([state, publication], ['none', undefined]);
  });

  test('locates an altered fragment', async () => {
    assert.deepEqual(await deviations({ ...signed, [third]: flipped(third) }), [
      { kind: 'altered', part: 'fragment', file: third, index: 2, signed_index: 2, time_seconds: 2 },
    ]);
  });

  test('calls a fragment altered that lost its Merkle box', async () => {
    assert.deepEqual(await deviations({ ...signed, [third]: files[third] as Buffer }), [
      { kind: 'altered', part: 'fragment', file: third, index: 2, signed_index: 2, time_seconds: 2 },
    ]);
  });

  test('locates a fragment whose file is missing, at the start, in the middle and at the end', async () => {
    for (const gone of [0, 2, paths.length - 1]) {
      const found = await deviations(without(signed, paths[gone] as string));
      assert.deepEqual(found, [
        { kind: 'missing', part: 'fragment', file: paths[gone], index: gone, signed_index: gone, time_seconds: gone },
      ]);
    }
  });

  test('locates a fragment that no playlist names any more', async () => {
    const [hls] = Object.keys(signed).filter((path) => path.startsWith('media_') && path.endsWith('.m3u8'));
    const text = Buffer.from(signed[hls as string] as Uint8Array).toString();
    const shortened = text.replace(new RegExp(`#EXTINF[^\\n]*\\n(?:#EXT-X-PROG[^\\n]*\\n)?${second}\\n`), '');
    assert.notEqual(shortened, text);
    const only = { ...without(signed, 'manifest.mpd', 'master.m3u8'), [hls as string]: Buffer.from(shortened) };
    assert.deepEqual(await deviations(only), [{ kind: 'missing', part: 'fragment', signed_index: 1, time_seconds: 1 }]);
  });

  test('tells fragments that stand in each other’s place', async () => {
    assert.deepEqual(await deviations({ ...signed, ...EXCHANGED }), [
      { kind: 'swapped', part: 'fragment', file: second, index: 1, signed_index: 1, time_seconds: 1 },
      { kind: 'swapped', part: 'fragment', file: third, index: 2, signed_index: 2, time_seconds: 2 },
    ]);
  });

  test('tells a fragment of another rendition, or a copy, that stands in the place of one', async () => {
    const foreign = audio.fragments[1]?.path as string;
    for (const other of [foreign, fourth]) {
      const { publication } = await verified({ ...signed, [second]: bytesOf(other) });
      const [found, ...others] = publication?.first ?? [];
      assert.deepEqual([found?.kind, found?.file, found?.signed_index, others], ['swapped', second, 1, []]);
      const origin =
        other === foreign ? { rendition: audio.init.path, index: 1 } : { rendition: video.init.path, index: 3 };
      assert.deepEqual(found?.signed_as, origin);
    }
  });

  test('tells a fragment that was moved', async () => {
    const moved = {
      [first]: bytesOf(second),
      [second]: bytesOf(third),
      [third]: bytesOf(fourth),
      [fourth]: bytesOf(first),
    };
    assert.deepEqual(await deviations({ ...signed, ...moved }), [
      { kind: 'reordered', part: 'fragment', file: fourth, index: 3, signed_index: 0, time_seconds: 3 },
    ]);
  });

  test('tells a fragment that was added', async () => {
    const [hls] = Object.keys(signed).filter((path) => path.startsWith('media_') && path.endsWith('.m3u8'));
    const text = Buffer.from(signed[hls as string] as Uint8Array).toString();
    const longer = text.replace(`${second}\n`, `${second}\n#EXTINF:1.0,\nadvertisement.m4s\n`);
    const only = { ...without(signed, 'manifest.mpd', 'master.m3u8'), [hls as string]: Buffer.from(longer) };
    assert.deepEqual(await deviations({ ...only, 'advertisement.m4s': files[first] as Buffer }), [
      { kind: 'added', part: 'fragment', file: 'advertisement.m4s', index: 2, time_seconds: 2 },
    ]);
  });

  test('tells what a playlist leaves out at its start, and each altered fragment once', async () => {
    const [hls] = Object.keys(signed).filter((path) => path.startsWith('media_') && path.endsWith('.m3u8'));
    const text = Buffer.from(signed[hls as string] as Uint8Array).toString();
    const start = text.indexOf('#EXTINF');
    const from = text.lastIndexOf('#EXTINF', text.indexOf(third));
    const later = { ...signed, [hls as string]: Buffer.from(text.slice(0, start) + text.slice(from)) };
    const cut = { kind: 'missing', part: 'fragment', signed_index: 0, time_seconds: 0 };
    const { state, publication } = await verified(later);
    assert.deepEqual([state, publication?.deviations], ['invalid', { missing: 2 }]);
    assert.deepEqual(await deviations({ ...later, [third]: files[third] as Buffer }), [
      cut,
      { kind: 'altered', part: 'fragment', file: third, index: 2, signed_index: 2, time_seconds: 2 },
    ]);
    const last = paths.at(-1) as string;
    const found = await deviations({ ...later, [last]: bytesOf(first) });
    assert.ok(found.some(({ kind, file }) => kind === 'swapped' && file === last));
  });

  test('tells what became of an init segment', async () => {
    const { init } = video;
    const about = { part: 'init', file: init.path, time_seconds: 0 };
    assert.deepEqual(await deviations({ ...signed, [init.path]: flipped(init.path) }), [{ kind: 'altered', ...about }]);
    const broken = bytesOf(init.path);
    // The size of the first box of the movie.
    broken.writeUInt8(1, broken.indexOf('moov') + 4);
    assert.deepEqual(
      (await deviations({ ...signed, [init.path]: broken })).filter(({ part }) => part === 'init'),
      [{ kind: 'altered', ...about }],
    );
    assert.deepEqual(await deviations({ ...signed, [init.path]: files[init.path] as Buffer }), [
      { kind: 'unsigned', ...about },
    ]);
    const exchanged = { [init.path]: bytesOf(audio.init.path), [audio.init.path]: bytesOf(init.path) };
    const found = await deviations({ ...signed, ...exchanged });
    assert.deepEqual(
      found.filter(({ part }) => part === 'init').map(({ kind }) => kind),
      ['swapped', 'swapped'],
    );
    assert.deepEqual(await deviations(without(signed, init.path)), [{ kind: 'missing', ...about }]);
  });

  test('is not given on an init segment alone, which is as it was signed', async () => {
    const folder = writeFiles(join(home, `case-${count++}`), signed);
    const input = { type: 'local_file_path', path: join(folder, video.init.path) } as const;
    await assert.rejects(verifyInput(input, folder), { reason: 'BMFF_MEDIA_MISSING', message: /submit the folder/ });
  });

  test('names the entries where none of the given name is one', async () => {
    const [hls] = Object.keys(signed).filter((path) => path.startsWith('media_') && path.endsWith('.m3u8'));
    await assert.rejects(verified(signed, { params: { entries: [hls as string] } }), {
      reason: 'PATTERN_NO_MATCH',
      message: /none of the folder's 2 entries, .*"manifest\.mpd", "master\.m3u8".* no other playlist names/,
    });
  });

  test('is bounded, whatever a playlist names and however much is wrong', async () => {
    const [hls] = Object.keys(signed).filter((path) => path.startsWith('media_') && path.endsWith('.m3u8'));
    const markup = '<img src=x onerror=alert(1)>'.repeat(7);
    const lines = Array.from({ length: 3000 }, (_, index) => `#EXTINF:1.0,\n${index}${markup}.m4s\n`);
    const longer = Buffer.from(signed[hls as string] as Uint8Array)
      .toString()
      .replace('#EXT-X-ENDLIST', `${lines.join('')}#EXT-X-ENDLIST`);
    const only = { ...without(signed, 'manifest.mpd', 'master.m3u8'), [hls as string]: Buffer.from(longer) };
    const verification = await verified(only);
    assert.deepEqual(verification.publication?.deviations, { missing: 3000 });
    assert.equal(verification.publication?.first.length, 25);
    assert.equal(verification.publication?.omitted, 2975);
    assert(JSON.stringify(verification).length < 80 * 1024);
  });

  test('says that the manifest was not read, where no fragment is there', async () => {
    const { codes, publication } = await verified(
      without(signed, ...paths, ...audio.fragments.map(({ path }) => path)),
    );
    assert.equal(publication?.read_officially, 0);
    assert.match(codes[0]?.explanation ?? '', /none of its fragments is there/);
  });

  test('names every signer, where renditions have manifests of several', async () => {
    const own = await signAsOthers(files, renditions, { manifestEach: true });
    assert.equal((await verified(own)).publication?.signers, undefined);
    const identity = await testIdentity({ leaf: { commonName: 'Somebody', organization: 'Somebody else' } });
    const others = await signAsOthers(files, renditions, { manifestEach: true, identity });
    const init = audio.init.path;
    const { state, summary, publication } = await verified({ ...own, [init]: others[init] as Buffer });
    assert.equal(state, 'valid');
    assert.deepEqual(publication?.signers, ['Attestream tests (Test signer)', 'Somebody else (Somebody)']);
    assert.match(summary, /several signers: "Attestream tests \(Test signer\)", "Somebody else \(Somebody\)"/);
  });

  test('is not given on a folder without a publication', async () => {
    await assert.rejects(verified({ 'film.mp4': bytesOf(first) }), { reason: 'PUBLICATION_NOT_FOUND' });
  });

  test('is written in full where the request has an output', async () => {
    const removed = paths.slice(1);
    const folder = writeFiles(join(home, 'written', 'show'), without(signed, ...removed));
    const input = { type: 'local_folder_path', path: folder } as const;
    const { outputPath } = await verifyInput(input, join(home, 'written'), { output: { type: 'local' } });
    assert.equal(outputPath, join(home, 'written/output/show_verification.json'));
    const { publication } = JSON.parse(readFileSync(outputPath, 'utf8')) as Verification;
    assert.equal(publication?.deviations['missing'], removed.length);
  });
});
