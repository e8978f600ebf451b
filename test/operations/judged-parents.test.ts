import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { ApiInputRef } from '#contract/request.ts';
import type { InputOutcome, Operation } from '#operations/operation.ts';
import { signAudio, signFragmented, signVideo } from '#operations/registry.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { withCompressedTables } from '../support/media/compressed-tables.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { topBoxesOf } from '../support/publications/signed-publication.ts';
import { runInput } from '../support/run-input.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { withHeaders } from '../support/verification/file-forgeries.ts';
import { makeSigned, verdictOn } from '../support/verification/forged-files.ts';
import { signPicture } from '../support/verification/signed-pictures.ts';
import { signBySdk } from '../support/verification/signed-updates.ts';

// A source is signed again with what `verify` says of it: the readers alone do not see all that is wrong.

const folder = temporaryFolder();
let count = 0;

/** Signs a file again, perhaps as made from another one. Returns what the manifest says of its parent. */
async function parentIn(
  name: string,
  bytes: Uint8Array,
  given?: { readonly name: string; readonly bytes: Uint8Array },
) {
  const home = writeFiles(join(folder, `case-${count++}`), { [name]: bytes });
  if (given !== undefined) writeFileSync(join(home, given.name), given.bytes);
  const parent = given && { type: 'file', source: { type: 'local_file_path', path: join(home, given.name) } };
  const params = parent && { parent, all_actions_included: true };
  const input = { type: 'local_file_path', path: join(home, name) } as const;
  return await parentBy(name.endsWith('.wav') ? signAudio : signVideo, input, params);
}

/** Signs a publication again whose only file was signed as one. Returns what the manifest says of its parent. */
async function parentOfPublication(bytes: Uint8Array) {
  const path = writeFiles(join(folder, `case-${count++}`, 'show'), {
    'film.mp4': bytes,
    'film.m3u8': playlistOf(bytes),
  });
  const params = { playlist_pattern: '*.m3u8', init_pattern: '*.mp4', frag_pattern: '*.mp4' };
  return await parentBy(signFragmented, { type: 'local_folder_path', path }, params);
}

/** Returns a playlist of a movie with one fragment, which lasts a second. */
function playlistOf(file: Uint8Array): string {
  const parts: Record<'init' | 'fragment', number> = { init: 0, fragment: 0 };
  for (const { type, bytes } of topBoxesOf(file)) {
    if (type === 'mfra') break;
    parts[parts.fragment > 0 || type === 'moof' ? 'fragment' : 'init'] += bytes.length;
  }
  return [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    '#EXT-X-TARGETDURATION:1',
    `#EXT-X-MAP:URI="film.mp4",BYTERANGE="${parts.init}@0"`,
    '#EXTINF:1,',
    `#EXT-X-BYTERANGE:${parts.fragment}@${parts.init}`,
    'film.mp4',
    '#EXT-X-ENDLIST\n',
  ].join('\n');
}

async function parentBy(
  operation: Operation<InputOutcome>,
  input: ApiInputRef & { readonly path: string },
  params: unknown,
) {
  const { outputPath, warnings } = await runInput(operation, { input, params }, join(input.path, '..'));
  const signed = operation === signFragmented ? join(outputPath, 'film/init.mp4') : outputPath;
  const mediaType = signed.endsWith('.wav') ? 'audio/wav' : 'video/mp4';
  const { allActionsIncluded, ingredients } = await readManifest(readFileSync(signed), mediaType);
  const [ingredient] = ingredients;
  const failures = ingredient?.validation_results?.activeManifest.failure.map(({ code }) => code) ?? [];
  return {
    allActionsIncluded,
    failures: failures.filter((code) => code !== 'signingCredential.untrusted'),
    warnings: warnings.map(({ reason }) => reason),
  };
}

const padded = (store: Buffer): Buffer =>
  withHeaders(store, (headers) => {
    const pad = Buffer.from(headers.get('pad') as Uint8Array);
    pad.write('other bytes', 100);
    headers.set('pad', pad);
  });

/** Returns a movie with other bytes in its file type. */
function withLargeFileType(bytes: Buffer): Buffer {
  const sizeBytes = bytes.readUInt32BE(0);
  const box = Buffer.concat([bytes.subarray(0, sizeBytes), Buffer.alloc(8000, 'other bytes')]);
  box.writeUInt32BE(box.length);
  return Buffer.concat([box, bytes.subarray(sizeBytes)]);
}

describe('a parent that verify does not call valid is recorded with what it says, and the history is not complete', () => {
  for (const [name, code] of [
    ['film.mp4', 'assertion.bmffHash.mismatch'],
    ['sound.wav', 'assertion.dataHash.mismatch'],
  ] as const) {
    test(`with other bytes in the padding of the signature of ${name}`, async () => {
      const { bytes, store } = await makeSigned(name, folder);
      assert.deepEqual(await parentIn(name, bytes), { allActionsIncluded: true, failures: [], warnings: [] });
      const at = bytes.indexOf(store);
      const forged = Buffer.concat([bytes.subarray(0, at), padded(store), bytes.subarray(at + store.length)]);
      assert.equal((await verdictOn(name, { [name]: forged }, folder)).state, 'invalid');
      const found = await parentIn(name, forged);
      assert.deepEqual(found, { allActionsIncluded: false, failures: [code], warnings: ['INGREDIENT_INVALID'] });
    });
  }

  test('with other bytes in the only file of a publication', async () => {
    const { bytes, store } = await makeSigned('fragmented.mp4', folder);
    // Nobody compares what the playlists play of it.
    const honest = { allActionsIncluded: false, failures: [], warnings: ['PUBLICATION_NOT_VERIFIED'] };
    assert.deepEqual(await parentOfPublication(bytes), honest);
    const at = bytes.indexOf(store);
    const others = {
      padding: Buffer.concat([bytes.subarray(0, at), padded(store), bytes.subarray(at + store.length)]),
      'file type': withLargeFileType(bytes),
    };
    for (const [what, forged] of Object.entries(others)) {
      assert.equal((await verdictOn('film.mp4', { 'film.mp4': forged }, folder)).state, 'invalid', what);
      const { failures, ...found } = await parentOfPublication(forged);
      assert.deepEqual(found.warnings, [...honest.warnings, 'INGREDIENT_INVALID'], what);
      assert.equal(failures.length, 1, what);
    }
  });

  test('with a box of C2PA in which no reader finds a manifest', async () => {
    const { bytes } = await makeSigned('film.mp4', folder);
    bytes.write('nanifest', bytes.indexOf('manifest\0'), 'latin1');
    const found = await parentIn('film.mp4', bytes);
    assert.deepEqual(found, { allActionsIncluded: false, failures: [], warnings: ['INGREDIENT_UNREADABLE'] });
  });

  test('with other bytes in the file type of an AVIF that the request gives', async () => {
    const { bytes } = await makeSigned('film.mp4', folder);
    makeMedia(folder, ['-f', 'lavfi', '-i', 'testsrc2=s=64x48', '-frames:v', '1', 'a.avif']);
    const picture = await signBySdk(readFileSync(join(folder, 'a.avif')), 'image/avif', 'create');
    const honest = await parentIn('film.mp4', bytes, { name: 'a.avif', bytes: picture });
    assert.deepEqual(honest, { allActionsIncluded: true, failures: [], warnings: [] });
    const forged = Buffer.from(picture);
    forged.write('jxl ', picture.indexOf('avif'));
    const { failures, warnings } = await parentIn('film.mp4', bytes, { name: 'a.avif', bytes: forged });
    const expected = [['assertion.bmffHash.additionalExclusionsPresent'], ['INGREDIENT_INVALID']];
    assert.deepEqual([failures, warnings], expected);
  });

  test('with tables that only others can read, in a movie that the request gives', async () => {
    const { bytes } = await makeSigned('film.mp4', folder);
    makeMedia(folder, [...'-f lavfi -i testsrc2=s=64x48:r=10:d=1 -c:v mjpeg'.split(' '), 'a.mov']);
    const movie = withCompressedTables(readFileSync(join(folder, 'a.mov')));
    const signed = await signBySdk(movie, 'video/quicktime', 'create');
    signed.write('jp2 ', 8);
    const { failures } = await parentIn('film.mp4', bytes, { name: 'a.mov', bytes: signed });
    assert.deepEqual(failures, ['assertion.bmffHash.mismatch']);
  });

  test('with other bytes in the manifest of a picture that the request gives', async () => {
    const { bytes } = await makeSigned('film.mp4', folder);
    const picture = await signPicture('a.png', folder);
    const padAt = picture.indexOf('\x63padY', 0, 'latin1') + 100;
    const forged = Buffer.from(picture);
    forged.write('other bytes', padAt);
    const honest = await parentIn('film.mp4', bytes, { name: 'a.png', bytes: picture });
    assert.deepEqual(honest, { allActionsIncluded: true, failures: [], warnings: [] });
    const found = await parentIn('film.mp4', bytes, { name: 'a.png', bytes: forged });
    const failures = ['assertion.dataHash.mismatch'];
    assert.deepEqual(found, { allActionsIncluded: false, failures, warnings: ['INGREDIENT_INVALID'] });
  });

  test('with an update manifest, and media that had been altered before', async () => {
    const { bytes } = await makeSigned('film.mp4', folder);
    const at = bytes.indexOf('mdat') + 60;
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    const updated = await signBySdk(bytes, 'video/mp4', 'update');
    assert.equal((await verdictOn('film.mp4', { 'film.mp4': updated }, folder)).state, 'invalid');
    const found = await parentIn('film.mp4', updated);
    const failures = ['assertion.bmffHash.mismatch'];
    assert.deepEqual(found, { allActionsIncluded: false, failures, warnings: ['INGREDIENT_INVALID'] });
  });

  test('but one with an update manifest is valid', async () => {
    const { bytes } = await makeSigned('film.mp4', folder);
    const updated = await signBySdk(bytes, 'video/mp4', 'update');
    assert.deepEqual(await parentIn('film.mp4', updated), { allActionsIncluded: true, failures: [], warnings: [] });
  });
});
