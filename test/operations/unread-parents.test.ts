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
async function parentOf(bytes: Buffer) {
  const inputs = new InputResolver({
    local_file_path: async ({ path }) =>
      path === NAME ? { ...memorySource(bytes, path), claimedMediaType: MEDIA_TYPE } : memorySource(smallWav(), path),
  });
  const parent = { type: 'file', source: { type: 'local_file_path', path: NAME } };
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
