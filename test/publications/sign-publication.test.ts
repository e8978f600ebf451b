import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { problemsOf } from '../support/judges/publication-judges.ts';
import { filesAt, folderAt, folderOf } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeShaka } from '../support/publications/make-publication.ts';
import { type SignedFolder, signFolder } from '../support/publications/sign-folder.ts';

import { assertEveryFragmentValid, film, folder, patterns, testPublications, USUAL } from './sign-publication.ts';

testPublications(USUAL);

describe('every fragment is valid to the reference reader', () => {
  test('with the leaf row in the manifest or any of its upper rows', async () => {
    // Six and seven fragments: rows of even and odd length, and leaves that go up without a sibling.
    const made = folderAt(makeFfmpegDash(film, join(folder, 'rows')));
    const levels = new Set<number>();
    for (const ballastBytes of [16_000, 65_500 - 34 * 10, 65_500 - 34 * 5, 65_500 - 34 * 3, 70_000]) {
      const signed = await signFolder(made, patterns, ballastBytes);
      for (const map of signed.maps) levels.add(map.levels);
      await assertEveryFragmentValid(signed);
    }
    assert.deepEqual([...levels].sort(), [0, 1, 2, 3]);
  });

  test('after a second signing, which replaces the first', async () => {
    const made = makeFfmpegDash(film, join(folder, 'signed-twice'));
    const first = await signFolder(folderAt(made), patterns);
    const again = await signFolder(folderOf({ ...filesAt(made), ...first.files }), patterns);
    await assertEveryFragmentValid(again);
    for (const [path, bytes] of Object.entries(first.files))
      assert.equal(again.files[path]?.length, bytes.length, path);
  });
});

test('what is changed, swapped or taken from elsewhere is caught', async () => {
  const made = folderAt(makeShaka(film, join(folder, 'altered')));
  for (const ballastBytes of [16_000, 70_000]) {
    const { files, renditions } = await signFolder(made, patterns, ballastBytes);
    const [
      {
        init,
        fragments: [first, second],
      },
      other,
    ] = renditions as [SignedFolder['renditions'][0], SignedFolder['renditions'][0]];
    const at = (path: string | undefined): Buffer => Buffer.from(files[path as string] as Buffer);
    const flip = (bytes: Buffer, position: number): Buffer => {
      bytes.writeUInt8((bytes[position] as number) ^ 1, position);
      return bytes;
    };
    assert.deepEqual(await problemsOf(at(init), at(first)), []);
    assert.notDeepEqual(await problemsOf(at(init), flip(at(first), at(first).length - 1)), [], 'a flipped byte');
    assert.notDeepEqual(await problemsOf(flip(at(init), at(init).length - 1), at(first)), [], 'a changed init segment');
    assert.notDeepEqual(await problemsOf(at(init), at(other.fragments[0])), [], 'a fragment of another rendition');
    const box = (bytes: Buffer): [number, number] => {
      const start = bytes.indexOf('merkle\0') - 28;
      return [start, bytes.readUInt32BE(start)];
    };
    const swapped = at(first);
    const [from, length] = box(at(second));
    assert.equal(box(swapped)[1], length);
    at(second).copy(swapped, box(swapped)[0], from, from + length);
    assert.notDeepEqual(await problemsOf(at(init), swapped), [], 'a fragment in the place of another');
  }
});
