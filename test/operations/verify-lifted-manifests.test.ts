import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { withCompressedTables } from '../support/media/compressed-tables.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { box } from '../support/media/movie-bytes.ts';
import { topBoxesOf } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { c2paBox, takeApart } from '../support/verification/file-forgeries.ts';
import { decoded, makeSigned, verdictOn } from '../support/verification/forged-files.ts';
import { signBySdk } from '../support/verification/signed-updates.ts';

// Anybody can lift a manifest out of its file, and put it next to that as a sidecar. Its hash leaves out boxes, so that media may stand
// in the place of the manifest, and before all boxes.

const folder = temporaryFolder();

function madeOf(name: string, args: string): Buffer {
  makeMedia(folder, [...args.split(' '), name]);
  return readFileSync(join(folder, name));
}

describe('a movie whose manifest was lifted into a sidecar', async () => {
  const stream = madeOf('other.ts', '-f lavfi -i color=red:s=80x64:r=25:d=1 -c:v mpeg2video -b:v 50k');
  const index = box('mfra');

  for (const name of ['film.mp4', 'fragmented.mp4', 'sound.m4a']) {
    test(`is valid, and invalid where it begins as no movie does and other media play: ${name}`, async () => {
      const { bytes, end, store } = await makeSigned(name, folder);
      const sidecar = `${name.slice(0, -4)}.c2pa`;
      const stateOf = async (file: Buffer) => (await verdictOn(name, { [name]: file, [sidecar]: store }, folder)).state;
      const room = Buffer.alloc(end - Buffer.concat([index, c2paBox('other', stream)]).length);
      const forged = Buffer.concat([index, c2paBox('other', Buffer.concat([stream, room])), bytes.subarray(end)]);
      assert.notEqual(decoded(name, forged, folder), decoded(name, bytes, folder));
      assert.equal(await stateOf(bytes), 'valid');
      assert.equal(await stateOf(forged), 'invalid');
    });
  }

  test('is invalid where it begins with free space that its hash leaves out, and other media play', async () => {
    const film = madeOf('space.mp4', '-f lavfi -i testsrc2=s=320x240:r=10:d=1 -c:v libx264 -preset ultrafast');
    const { bytes, end, store } = await takeApart(await signBySdk(film, 'video/mp4', 'create'));
    const stateOf = async (file: Buffer) =>
      (await verdictOn('space.mp4', { 'space.mp4': file, 'space.c2pa': store }, folder)).state;
    const space = box('skip', stream, Buffer.alloc(end - box('skip', stream).length));
    const forged = Buffer.concat([space, bytes.subarray(end)]);
    assert.notEqual(decoded('space.mp4', forged, folder), decoded('space.mp4', bytes, folder));
    assert.equal(await stateOf(bytes), 'valid');
    assert.equal(await stateOf(forged), 'invalid');
  });

  test('is not vouched for where only others can read its tables', async () => {
    const film = madeOf('film.mov', '-f lavfi -i testsrc2=s=64x48:r=10:d=1 -c:v mjpeg');
    const parts = topBoxesOf(await signBySdk(withCompressedTables(film), 'video/quicktime', 'create'));
    const store = parts.find(({ type }) => type === 'uuid')?.bytes.subarray(c2paBox('manifest', Buffer.of()).length);
    assert(store !== undefined);
    for (const content of [store, Buffer.alloc(store.length, 1)]) {
      const boxes = parts.map(({ type, bytes }) => (type === 'uuid' ? c2paBox('manifest', content) : bytes));
      const verdict = await verdictOn('film.mov', { 'film.mov': Buffer.concat(boxes), 'film.c2pa': store }, folder);
      assert.deepEqual(verdict, { state: 'refused', reason: 'BMFF_MOVIE_COMPRESSED' });
    }
  });
});
