import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { makeMedia } from '../support/media/make-media.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { riffChunk, shortened, withHeaders } from '../support/verification/file-forgeries.ts';
import { decoded, verdictOn } from '../support/verification/forged-files.ts';
import { signBySdk } from '../support/verification/signed-updates.ts';

// AVI of several RIFF chunks (OpenDML), which is not signed here.

const folder = temporaryFolder();
const state = async (bytes: Uint8Array) => (await verdictOn('film.avi', { 'film.avi': bytes }, folder)).state;

describe('an AVI of several RIFF chunks', async () => {
  makeMedia(folder, '-f lavfi -i testsrc2=s=64x48:r=10:d=1 -c:v mpeg4 plain.avi'.split(' '));
  const plain = readFileSync(join(folder, 'plain.avi'));
  const at = plain.indexOf('movi') - 8;
  const movi = plain.subarray(at, at + 8 + plain.readUInt32LE(at + 4));
  const further = riffChunk('RIFF', Buffer.concat([Buffer.from('AVIX'), movi]));
  const signed = await signBySdk(Buffer.concat([plain, further]), 'video/avi', 'create');
  const chunkAt = signed.indexOf('C2PA');
  const [storeAt, length] = [chunkAt + 8, signed.readUInt32LE(chunkAt + 4)];
  const store = signed.subarray(storeAt, storeAt + length);
  const withContent = (...parts: readonly Buffer[]) => {
    const content = Buffer.concat([...parts, Buffer.alloc(length)]).subarray(0, length);
    return Buffer.concat([signed.subarray(0, storeAt), content, signed.subarray(storeAt + length)]);
  };

  test('is valid as it was signed', async () => {
    assert.equal(await state(signed), 'valid');
    assert.equal(await state(withContent(shortened(store, 4000))), 'valid');
  });

  test('is invalid with media that play in the padding of its signature, or behind its manifest', async () => {
    const padded = withHeaders(store, (headers) => {
      const pad = headers.get('pad') as Buffer;
      headers.set('pad', Buffer.concat([movi.subarray(12, 3000), pad]).subarray(0, pad.length));
    });
    for (const forged of [withContent(padded), withContent(shortened(store, 4000), movi.subarray(12))]) {
      assert.notEqual(decoded('film.avi', forged, folder), decoded('film.avi', signed, folder));
      assert.equal(await state(forged), 'invalid');
    }
  });
});
