import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { InputResolver } from '#inputs/input-resolver.ts';
import { signAudio } from '#operations/registry.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { memorySource } from '../support/memory-bytes.ts';
import { runInput } from '../support/run-input.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { riffChunk, shortened, withHeaders } from '../support/verification/file-forgeries.ts';
import { CONTAINERS, decoded, verdictOn } from '../support/verification/forged-files.ts';
import { signBySdk } from '../support/verification/signed-updates.ts';

// Parents that the official reader accepts, in containers that `verify` refuses.

const folder = temporaryFolder();
const NAME = 'film.avi';
const MEDIA_TYPE = 'video/avi';
makeMedia(folder, [...(CONTAINERS[NAME] as string).split(' '), NAME]);
const film = readFileSync(join(folder, NAME));
let count = 0;

/** Puts the media of the film again into the statuses of certificates, which no signature covers: players search AVI for them. */
function forgedFrom(signed: Buffer): Buffer {
  const at = signed.indexOf('C2PA') + 8;
  const store = signed.subarray(at, at + signed.readUInt32BE(at));
  const media = film.subarray(film.indexOf('movi') + 4).subarray(0, 8000);
  const der = Buffer.concat([Buffer.from([0x30, 0x82, media.length >> 8, media.length & 255]), media]);
  const other = withHeaders(shortened(store, 9000), (headers) => headers.set('rVals', new Map([['ocspVals', [der]]])));
  const zeros = Buffer.alloc(store.length - other.length);
  return Buffer.concat([signed.subarray(0, at), other, zeros, signed.subarray(at + store.length)]);
}

/** Signs a file as made from another one, of which a server states the media type. Returns what the manifest says of that. */
async function parentOf(bytes: Buffer, name = NAME) {
  const inputs = new InputResolver({
    local_file_path: async ({ path }) =>
      path === name ? { ...memorySource(bytes, path), claimedMediaType: MEDIA_TYPE } : memorySource(smallWav(), path),
  });
  const parent = { type: 'file', source: { type: 'local_file_path', path: name } };
  const input = { type: 'local_file_path', path: 'new.wav' } as const;
  const asked = { input, params: { parent, all_actions_included: true } };
  const { outputPath } = await runInput(signAudio, asked, join(folder, `case-${count++}`), { services: { inputs } });
  const { allActionsIncluded, ingredients } = await readManifest(readFileSync(outputPath), 'audio/wav');
  const { success = [], failure = [] } = ingredients[0]?.validation_results?.activeManifest ?? {};
  const failures = failure.map(({ code }) => code).filter((code) => code !== 'signingCredential.untrusted');
  return { allActionsIncluded, failures, isMatch: success.some(({ code }) => code === 'assertion.dataHash.match') };
}

const many = Buffer.concat([film, ...Array.from({ length: 5000 }, () => riffChunk('JUNK', Buffer.alloc(0)))]);
many.writeUInt32LE(many.length - 8, 4);
const otherForm = Buffer.from(film);
otherForm.write('AVI\x19', 8, 'latin1');

const longs = (...numbers: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [index, number] of numbers.entries()) bytes.writeUInt32LE(number, index * 4);
  return bytes;
};

const PIXELS_AT = 8;

/** Makes a gray picture of 8 by 8 in TIFF that names as many further pictures, of which the newer reader takes a thousand. */
function pictureWith(furtherCount: number): Buffer {
  const directoryAt = PIXELS_AT + 64;
  const tags = [
    ...[[256, 8] as const, [257, 8] as const, [258, 8] as const, [259, 1] as const, [262, 1] as const],
    ...[[273, PIXELS_AT] as const, [277, 1] as const, [278, 8] as const, [279, 64] as const],
  ];
  const listAt = directoryAt + 2 + (tags.length + 1) * 12 + 4;
  const furtherAt = listAt + furtherCount * 4;
  const entry = (tag: number, count: number, value: number) => {
    const start = Buffer.from([0, 0, 4, 0]);
    start.writeUInt16LE(tag);
    return Buffer.concat([start, longs(count, value)]);
  };
  const entries = [...tags.map(([tag, value]) => entry(tag, 1, value)), entry(330, furtherCount, listAt)];
  return Buffer.concat([
    ...[Buffer.from('II*\0'), longs(directoryAt), Buffer.alloc(64, 0x80)],
    ...[Buffer.from([entries.length, 0]), ...entries, longs(0)],
    ...[longs(...new Array<number>(furtherCount).fill(furtherAt)), Buffer.from([1, 0]), entry(256, 1, 1), longs(0)],
  ]);
}

describe('a picture that was altered before its manifest was updated is not recorded as unchanged', () => {
  for (const furtherCount of [10, 2000]) {
    test(`with ${furtherCount} further pictures`, async () => {
      const name = 'a.tiff';
      const signed = await signBySdk(pictureWith(furtherCount), 'image/tiff', 'create');
      const altered = Buffer.from(signed);
      altered.fill(0x10, signed.indexOf(Buffer.alloc(64, 0x80)), signed.indexOf(Buffer.alloc(64, 0x80)) + 64);
      const forged = await signBySdk(altered, 'image/tiff', 'update');
      assert.notEqual(decoded(name, forged, folder), decoded(name, signed, folder));
      assert.equal((await verdictOn(name, { [name]: forged }, folder)).state, 'invalid');
      assert.equal((await parentOf(forged, name)).allActionsIncluded, false);
    });
  }
});

describe('a parent that verify refuses is not recorded as unchanged', () => {
  for (const [what, bytes, reason] of [
    ['with more chunks than are read', many, 'RIFF_TOO_MANY_CHUNKS'],
    ['that is known by what its server says alone', otherForm, 'FORMAT_UNKNOWN'],
  ] as const) {
    test(what, async () => {
      const signed = await signBySdk(bytes, MEDIA_TYPE, 'create');
      const forged = forgedFrom(signed);
      assert.notEqual(decoded(NAME, forged, folder), decoded(NAME, signed, folder));
      for (const file of [signed, forged]) {
        assert.deepEqual(await verdictOn(NAME, { [NAME]: file }, folder), { state: 'refused', reason });
        const failures = ['general.error'];
        assert.deepEqual(await parentOf(file), { allActionsIncluded: false, failures, isMatch: false });
      }
    });
  }

  test('but one that is read is, as it was signed', async () => {
    const signed = await signBySdk(film, MEDIA_TYPE, 'create');
    assert.deepEqual(await parentOf(signed), { allActionsIncluded: true, failures: [], isMatch: true });
    const failures = ['assertion.dataHash.mismatch'];
    assert.deepEqual(await parentOf(forgedFrom(signed)), { allActionsIncluded: false, failures, isMatch: false });
  });
});
