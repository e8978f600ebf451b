import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { signBySdk } from '../support/verification/signed-updates.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Update manifests of the official SDK: what binds the media stands in the manifest before them, in BMFF in another box.

const folder = temporaryFolder();

const FILES: Readonly<Record<string, readonly [mediaType: string, args: string]>> = {
  'film.mp4': ['video/mp4', '-f lavfi -i testsrc2=s=64x48:r=10:d=1 -c:v libx264 -preset ultrafast'],
  'sound.m4a': ['audio/mp4', '-f lavfi -i sine=r=8000:d=1 -c:a aac'],
  'a.jpg': ['image/jpeg', '-f lavfi -i testsrc2=s=64x48 -frames:v 1 -pix_fmt yuvj420p'],
  'a.png': ['image/png', '-f lavfi -i testsrc2=s=64x48 -frames:v 1'],
};

async function updated(name: string): Promise<Buffer> {
  const [mediaType, args] = FILES[name] as readonly [string, string];
  makeMedia(folder, [...args.split(' '), name]);
  const signed = await signBySdk(readFileSync(join(folder, name)), mediaType, 'create');
  return await signBySdk(signed, mediaType, 'update');
}

let count = 0;

async function verdict(name: string, bytes: Uint8Array): Promise<Verification> {
  const home = writeFiles(join(folder, `case-${count++}`), { [name]: bytes });
  return (await verifyInput({ type: 'local_file_path', path: join(home, name) }, home)).verification;
}

describe('an update manifest', () => {
  for (const name of Object.keys(FILES)) {
    test(`is valid in ${name}, and not once a byte of the media is another one`, async () => {
      const bytes = await updated(name);
      const { state, summary, manifests } = await verdict(name, bytes);
      assert.deepEqual([state, manifests.length], ['valid', 2]);
      assert.match(summary, /^Unchanged since signing\. /);
      const at = name.endsWith('.jpg') || name.endsWith('.png') ? bytes.length - 40 : bytes.indexOf('mdat') + 60;
      bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      assert.equal((await verdict(name, bytes)).state, 'invalid');
    });
  }

  test('is invalid with other bytes in the padding of either signature in BMFF', async () => {
    const bytes = await updated('film.mp4');
    for (const purpose of ['original', 'update']) {
      const forged = Buffer.from(bytes);
      const storeAt = forged.indexOf(`${purpose}\0`) + purpose.length + 1 + 8;
      const padAt = forged.indexOf('\x63padY', storeAt, 'latin1') + 60;
      forged.write('other bytes', padAt);
      assert.equal((await verdict('film.mp4', forged)).state, 'invalid', purpose);
    }
  });
});
