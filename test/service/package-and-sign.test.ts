import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JobResultEntry } from '#contract/job.ts';
import type { PublicationPatterns } from '#publications/publication.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { joinRendition, packetHashes } from '../support/judges/packets.ts';
import { readManifest, type ShownManifest } from '../support/manifests/read-manifest.ts';
import { ffmpeg, makeFilm, SRT } from '../support/media/make-film.ts';
import { filesAt, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash } from '../support/publications/make-publication.ts';
import {
  assertFragmentsValid,
  assertSignedPublication,
  bytesOf,
  c2paBoxesOf,
  type Files,
  renditionsOf,
} from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const PACKAGED: PublicationPatterns = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.m4s' };
const DASH: PublicationPatterns = { playlist: '*.{m3u8,mpd}', init: 'init*', frag: 'chunk*' };

/** Of SHA-256. A proof has one for each level. */
const DIGEST_BYTES = 32;

const home = temporaryFolder();
const film = join(home, 'film.mp4');
let service: RunningService;
/** A small film that carries a manifest of its own. */
let signedFilm: string;

before(async () => {
  makeFilm(home);
  makeFilm(home, 'small.mp4', '160x90');
  const settings = { SERVICE__SIGNING__VERIFY_FRAGMENTS: 'all' };
  service = await startService({ folder: join(home, 'service'), settings });
  const { results } = await service.runSync('/v2/sync/c2pa/video', {
    inputs: [{ type: 'local_file_path', path: join(home, 'small.mp4') }],
    output: { type: 'local', prefix: 'sources' },
  });
  signedFilm = outputOf(results[0]);
});
after(() => service.stop());

let runs = 0;

/** Packages and signs a folder, and returns the entry of its result. */
async function run(folder: string, params: object = {}): Promise<JobResultEntry> {
  runs += 1;
  const { results } = await service.runSync('/v2/sync/c2pa/package', {
    inputs: [{ type: 'local_folder_path', path: folder }],
    output: { type: 'local', prefix: `run-${runs}` },
    params,
  });
  const [entry] = results;
  assert.ok(entry !== undefined);
  return entry;
}

function outputOf(entry: JobResultEntry | undefined): string {
  assert.equal(entry?.error, undefined);
  return entry?.output_path ?? assert.fail('there is an output');
}

/** A folder of copies of files, under names of their own. */
function folderOf(name: string, files: Readonly<Record<string, string>>): string {
  const folder = join(home, name);
  mkdirSync(folder, { recursive: true });
  for (const [as, path] of Object.entries(files)) copyFileSync(path, join(folder, as));
  return folder;
}

/** Holds every fragment of a signed package valid, and returns the manifest that all init segments have. */
async function judged(output: Files, patterns = PACKAGED): Promise<ShownManifest> {
  const renditions = await renditionsOf(output, patterns);
  await assertFragmentsValid(output, renditions);
  const stores = renditions.flatMap(({ init }) => c2paBoxesOf(bytesOf(output, init), 'manifest'));
  assert.equal(stores.length, renditions.length, 'one manifest in every init segment');
  const box = stores[0]?.bytes ?? assert.fail('there is a manifest');
  assert.ok(stores.every(({ bytes }) => bytes.equals(box)));
  return await readManifest(box.subarray(28 + 'manifest\0'.length + 8), 'application/c2pa');
}

function rolesOf({ ingredients }: ShownManifest): string[] {
  return ingredients.map(({ title, relationship, active_manifest }) =>
    [title, relationship, ...(active_manifest === undefined ? [] : ['with its manifest'])].join(' '),
  );
}

function reasonsOf({ warning_details = [] }: JobResultEntry): string[] {
  return warning_details.map(({ reason }) => reason);
}

function actionsOf({ actions }: ShownManifest): string[] {
  return actions.map(({ action }) => action);
}

describe('packaging and signing a folder of media', () => {
  test('tells of patterns that choose nothing there, and refuses one that nothing matches', async () => {
    const folder = folderOf('patterns', { 'small.mp4': join(home, 'small.mp4') });
    const entry = await run(folder, { frag_pattern: '*.mp4' });
    await judged(filesAt(outputOf(entry)));
    assert.deepEqual(reasonsOf(entry), ['PATTERN_NOT_USED']);
    for (const params of [{ init_pattern: 'init*' }, { init_pattern: '*.mp4', frag_pattern: '*.m4s' }]) {
      assert.equal((await run(folder, params)).error_details?.['reason'], 'PATTERN_NO_MATCH');
    }
  });

  test('signs every rendition with one manifest, and keeps the packets', async () => {
    const folder = folderOf('one', { 'film.mp4': film });
    const params = { assertions: [{ label: 'com.example.review', data: { approved: true } }] };
    const entry = await run(folder, params);
    const output = outputOf(entry);
    const manifest = await judged(filesAt(output));
    assert.equal(manifest.title, 'one');
    assert.deepEqual(rolesOf(manifest), ['film.mp4 parentOf']);
    assert.deepEqual(actionsOf(manifest), ['c2pa.opened', 'c2pa.repackaged']);
    assert.equal(manifest.allActionsIncluded, true);
    assert.deepEqual(manifest.assertions.find(({ label }) => label === 'com.example.review')?.data, { approved: true });
    const renditions = { 'video/h264_180p': 'v:0', 'audio/en_aac': 'a:0', 'audio/de_aac': 'a:1' };
    for (const [rendition, stream] of Object.entries(renditions)) {
      assert.deepEqual(packetHashes(joinRendition(join(output, rendition))), packetHashes(film, stream), rendition);
    }
    assert.equal(entry.warnings, undefined);
  });

  test('takes the tallest video for the parent, the others for inputs, and each with its own chain', async () => {
    const folder = folderOf('several', { 'a-small.mp4': signedFilm, 'film.mp4': film });
    ffmpeg(home, ['-f', 'lavfi', '-i', 'sine=f=300:r=48000:d=8'], '-c:a pcm_s16le several/film.it.wav');
    writeFileSync(join(folder, 'film.fr.srt'), SRT);
    const entry = await run(folder);
    const manifest = await judged(filesAt(outputOf(entry)));
    assert.deepEqual(rolesOf(manifest), [
      'film.mp4 parentOf',
      'a-small.mp4 inputTo with its manifest',
      'film.it.wav inputTo',
      'film.fr.srt inputTo',
    ]);
    assert.deepEqual(actionsOf(manifest), ['c2pa.opened', 'c2pa.repackaged', 'c2pa.transcoded', 'c2pa.transcoded']);
    const [, repackaged, ...transcoded] = manifest.actions;
    assert.equal(repackaged?.parameters?.ingredients?.length, 4);
    assert.deepEqual([reasonsOf(entry)[0], manifest.allActionsIncluded], ['TRACK_LEFT_OUT', false]);
    const described = transcoded.map(({ description, parameters }) => parameters ?? description);
    assert.deepEqual(described, ['film.it.wav: pcm-s16 to flac', 'film.fr.srt: srt to vtt']);
    const small =
      manifest.ingredients[1]?.validation_results?.activeManifest.failure ?? assert.fail('it was validated');
    assert.deepEqual(
      small.map(({ code }) => code).filter((code) => code !== 'signingCredential.untrusted'),
      [],
    );
    const unsigned = { playlist: 'text/fr/index.m3u8', reason: 'TEXT_SEGMENTS_UNSIGNED' };
    assert.deepEqual(entry.warning_details?.at(-1), unsigned);
    assert.equal(entry.warnings?.length, entry.warning_details?.length);
  });

  test('makes a given parent the parent, and loses no chain and no part', async () => {
    const folder = folderOf('given', { 'film.mp4': signedFilm });
    writeFileSync(join(folder, 'film.fr.srt'), SRT);
    const parent = { type: 'reference', reference: 'asset-4711' };
    const manifest = await judged(filesAt(outputOf(await run(folder, { parent }))));
    assert.deepEqual(rolesOf(manifest), [
      'asset-4711 parentOf',
      'film.mp4 componentOf with its manifest',
      'film.fr.srt inputTo',
    ]);
    assert.equal(manifest.allActionsIncluded, false);
    const overridden = await run(folder, { parent, parent_overrides: [{ input_index: 0, parent: null }] });
    assert.deepEqual(rolesOf(await judged(filesAt(outputOf(overridden)))), [
      'film.mp4 parentOf with its manifest',
      'film.fr.srt inputTo',
    ]);
  });

  test('states how media were made, and names the parent where it is what was transcoded', async () => {
    const folder = folderOf('raw', {});
    ffmpeg(home, ['-f', 'lavfi', '-i', 'sine=f=300:r=48000:d=8'], '-c:a pcm_s16le raw/tone.wav');
    const params = { digital_source_type: 'digitalCapture', actions: [{ action: 'c2pa.trimmed' }] };
    const made = await judged(filesAt(outputOf(await run(folder, params))));
    assert.deepEqual(made.ingredients ?? [], []);
    assert.deepEqual(actionsOf(made), ['c2pa.created', 'c2pa.trimmed', 'c2pa.repackaged', 'c2pa.transcoded']);
    const { actions } = await judged(filesAt(outputOf(await run(folder))));
    const [opened, ...others] = actions.map(({ parameters }) => parameters?.ingredients ?? []);
    assert.deepEqual([opened?.length, ...others], [1, opened, opened]);
  });

  test('proves every segment where the manifest has no room for their hashes, however many there turn out to be', async () => {
    const folder = folderOf('proven', { 'film.mp4': film });
    const rareKeys = '-map 0:v -c:v libx264 -preset ultrafast -s 160x90 -g 72 -keyint_min 72 -sc_threshold 0';
    ffmpeg(home, ['-i', film], `${rareKeys} proven/rare-keys.mp4`);
    ffmpeg(home, ['-i', film], '-map 0:a:0 -c copy proven/unknown-length.aac');
    const assertions = [{ label: 'com.example.long', data: { text: 'x'.repeat(70_000) } }];
    const output = filesAt(outputOf(await run(folder, { segment_duration: 1, assertions })));
    await judged(output);
    const boxesOf = (path: string) =>
      c2paBoxesOf(output[path] as Uint8Array, 'merkle').map(({ bytes }) => bytes.length);
    assert.ok('video/h264_180p/00008.m4s' in output && !('video/h264_90p/00004.m4s' in output));
    assert.ok(boxesOf('video/h264_180p/00001.m4s').every((sizeBytes) => sizeBytes > 3 * DIGEST_BYTES + 60));
  });

  test('follows the parameters of packaging', async () => {
    const folder = folderOf('wishes', { 'film.mp4': film });
    const params = { formats: ['hls'], hls_name: 'play.m3u8', segment_duration: 2, iframe_playlists: true };
    const output = filesAt(outputOf(await run(folder, params)));
    await judged(output);
    assert.ok('play.m3u8' in output && !('manifest.mpd' in output));
    assert.ok('video/h264_180p/00004.m4s' in output);
  });
});

describe('packaging and signing a folder that is a publication', () => {
  test('of CMAF signs it as it is, and tells so', async () => {
    const folder = join(home, 'dash');
    makeFfmpegDash(film, folder);
    writeFiles(folder, { 'poster.jpg': 'not really a picture' });
    const entry = await run(folder);
    const output = filesAt(outputOf(entry));
    await assertSignedPublication(filesAt(folder), DASH, output);
    const manifest = await judged(output, DASH);
    assert.deepEqual(rolesOf(manifest), ['dash parentOf']);
    assert.deepEqual(actionsOf(manifest), ['c2pa.opened']);
    assert.deepEqual(reasonsOf(entry), ['PUBLICATION_FOUND']);
  });

  test('signs the film, and carries pictures for the seek bar along', async () => {
    const folder = join(home, 'pictures');
    makeFfmpegDash(film, folder);
    writeFiles(folder, { 'tiles_1.jpg': 'not really a picture' });
    const pictures =
      '<AdaptationSet mimeType="image/jpeg"><SegmentTemplate media="tiles_$Number$.jpg" duration="8" startNumber="1"/><Representation id="tiles" bandwidth="1"/></AdaptationSet>';
    const mpd = readdirSync(folder).find((path) => path.endsWith('.mpd')) ?? assert.fail('there is an MPD');
    const text = readFileSync(join(folder, mpd), 'utf8');
    writeFileSync(
      join(folder, mpd),
      text.replace('</Period>', () => `${pictures}</Period>`),
    );
    const output = filesAt(outputOf(await run(folder)));
    await assertSignedPublication(filesAt(folder), DASH, output);
    await judged(output, DASH);
  });

  test('signs what the patterns choose of it', async () => {
    const folder = join(home, 'chosen');
    makeFfmpegDash(film, folder);
    const params = { init_pattern: 'init-stream1.*', frag_pattern: 'chunk-stream1-*' };
    const output = filesAt(outputOf(await run(folder, params)));
    const manifests = Object.keys(output).filter(
      (path) => c2paBoxesOf(output[path] as Uint8Array, 'manifest').length > 0,
    );
    assert.deepEqual(manifests, ['init-stream1.m4s']);
    await judged(output, { ...DASH, init: params.init_pattern, frag: params.frag_pattern });
  });

  test('signs init segments and fragments that no playlist names, where patterns choose them', async () => {
    const folder = join(home, 'unplayed');
    makeFfmpegDash(film, folder);
    for (const path of readdirSync(folder)) if (/\.(m3u8|mpd)$/.test(path)) rmSync(join(folder, path));
    const entry = await run(folder, { init_pattern: 'init-stream0.*', frag_pattern: 'chunk-stream0-*' });
    const output = filesAt(outputOf(entry));
    const signed = Object.keys(output).filter((path) => c2paBoxesOf(output[path] as Uint8Array, 'merkle').length > 0);
    assert.ok(signed.length > 0 && signed.every((path) => path.startsWith('chunk-stream0-')));
  });

  test('of transport streams is packaged anew, and the folder is its parent', async () => {
    const folder = join(home, 'transport');
    mkdirSync(folder);
    ffmpeg(folder, ['-i', film], '-map 0:v -map 0:a:0 -c copy -f hls -hls_time 2 -hls_playlist_type vod index.m3u8');
    const entry = await run(folder);
    const output = outputOf(entry);
    const manifest = await judged(filesAt(output));
    assert.deepEqual(rolesOf(manifest), ['transport parentOf']);
    assert.deepEqual(actionsOf(manifest), ['c2pa.opened', 'c2pa.repackaged']);
    assert.deepEqual(packetHashes(joinRendition(join(output, 'video/h264_180p'))), packetHashes(film, 'v:0'));
    assert.deepEqual(reasonsOf(entry), ['PUBLICATION_FOUND']);
  });

  test('of transport streams is packaged anew as far as the patterns choose it', async () => {
    const folder = join(home, 'some');
    mkdirSync(folder);
    const hls = '-c copy -f hls -hls_time 2 -hls_playlist_type vod -hls_segment_filename';
    ffmpeg(folder, ['-i', film], `-map 0:v ${hls} video-%d.ts video.m3u8`);
    ffmpeg(folder, ['-i', film], `-map 0:a:0 ${hls} sound-%d.ts sound.m3u8`);
    const entry = await run(folder, { frag_pattern: 'video-*' });
    const output = filesAt(outputOf(entry));
    assert.ok('video/h264_180p/init.mp4' in output);
    assert.ok(!Object.keys(output).some((path) => path.startsWith('audio/')));
    assert.ok(reasonsOf(entry).includes('RENDITIONS_NOT_CHOSEN'), reasonsOf(entry).join());
    const refused = await run(folder, { frag_pattern: '*.m4s' });
    assert.equal(refused.error_details?.['reason'], 'PATTERN_NO_MATCH');
  });

  test('tells of a fragment that no playlist names, and leaves it unsigned', async () => {
    const first = outputOf(await run(folderOf('leftover', { 'film.mp4': film })));
    copyFileSync(join(first, 'video/h264_180p/00001.m4s'), join(first, 'video/h264_180p/99999.m4s'));
    assert.deepEqual(reasonsOf(await run(first)), ['PUBLICATION_FOUND', 'FRAGMENTS_UNSIGNED']);
  });

  test('of signed segments has their manifest for a parent, signed as it is or made anew', async () => {
    const first = outputOf(await run(folderOf('again', { 'film.mp4': film })));
    for (const existing of ['auto', 'repackage']) {
      const manifest = await judged(filesAt(outputOf(await run(first, { existing }))));
      assert.deepEqual(rolesOf(manifest), ['again parentOf with its manifest'], existing);
      assert.equal(manifest.manifestCount, 2);
    }
  });
});

describe('a folder that cannot be packaged and signed', () => {
  const refused: Readonly<Record<string, { reason: string; params?: object; make(folder: string): void }>> = {
    'an empty one': { reason: 'FOLDER_EMPTY', make: () => undefined },
    'one without media': { reason: 'PACKAGING_NO_MEDIA', make: (at) => writeFileSync(join(at, 'notes.txt'), 'notes') },
    'one with a truncated film': {
      reason: 'PACKAGING_FILES_BROKEN',
      make(at) {
        copyFileSync(film, join(at, 'film.mp4'));
        truncateSync(join(at, 'film.mp4'), 1000);
      },
    },
    'one that a pattern does not fit': {
      reason: 'PATTERN_NO_MATCH',
      params: { playlist_pattern: '*.m3u8' },
      make: (at) => copyFileSync(film, join(at, 'film.mp4')),
    },
    'one with warnings of packaging, where none are allowed': {
      reason: 'PACKAGING_WARNED',
      params: { strict: true },
      make(at) {
        copyFileSync(film, join(at, 'film.mp4'));
        writeFileSync(join(at, 'film.fr.srt'), SRT);
      },
    },
    'one whose film has a manifest that does not validate, where no warnings are allowed': {
      reason: 'PACKAGING_WARNED',
      params: { strict: true },
      make(at) {
        const bytes = readFileSync(signedFilm);
        bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
        writeFileSync(join(at, 'film.mp4'), bytes);
      },
    },
    'a publication with text that stays unsigned, where no warnings are allowed': {
      reason: 'PACKAGING_WARNED',
      params: { strict: true },
      make(at) {
        makeFfmpegDash(film, at);
        writeFiles(at, {
          'text.m3u8': '#EXTM3U\n#EXT-X-TARGETDURATION:8\n#EXTINF:8,\ntext.vtt\n#EXT-X-ENDLIST\n',
          'text.vtt': 'WEBVTT\n',
        });
      },
    },
  };

  for (const [name, { reason, params = {}, make }] of Object.entries(refused)) {
    test(`${name} fails alone, and leaves nothing`, async () => {
      const folder = join(home, 'refused', name);
      mkdirSync(folder, { recursive: true });
      make(folder);
      const good = folderOf('good', { 'film.mp4': film });
      const { results } = await service.runSync('/v2/sync/c2pa/package', {
        inputs: [folder, good].map((path) => ({ type: 'local_folder_path', path })),
        output: { type: 'local', prefix: name },
        params,
      });
      assert.deepEqual(
        results.map(({ status }) => status),
        ['failed', reason === 'PATTERN_NO_MATCH' ? 'failed' : 'succeeded'],
      );
      assert.equal(results[0]?.error_details?.reason, reason, results[0]?.error);
      const delivered = join(home, 'service/output', name);
      const expected = reason === 'PATTERN_NO_MATCH' ? [] : ['good'];
      assert.deepEqual(existsSync(delivered) ? readdirSync(delivered) : [], expected);
    });
  }

  test('a file in its place is refused with the request', async () => {
    const submit = service.submit('/v2/c2pa/package', {
      inputs: [{ type: 'local_file_path', path: film }],
      params: {},
    });
    await assert.rejects(submit, /INVALID_INPUT_TYPE/);
  });

  test('params that are missing are refused with the request', async () => {
    const submit = service.submit('/v2/c2pa/package', { inputs: [{ type: 'local_folder_path', path: home }] });
    await assert.rejects(submit, /VALIDATION_FAILED/);
  });
});
