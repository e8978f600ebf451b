import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rename, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { isUnchangedSince, snapshotUnlessForeign } from '#outputs/local/commit-folder.ts';
import { putFiles } from './publication-files.ts';

let place: string;

beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'attestream-contents-'));
});
afterEach(() => rm(place, { recursive: true }));

describe('a look at a folder for what is foreign', () => {
  const files = new Map([['a/b/c.m4s', 3]]);

  test('tells a file of another size, another file and another folder', async () => {
    const folder = join(place, 'p');
    await putFiles(folder, { 'a/b/c.m4s': 'abc' });
    assert.notEqual(await snapshotUnlessForeign(folder, files), null);
    assert.equal(await snapshotUnlessForeign(folder, new Map([['a/b/c.m4s', 4]])), null);
    assert.equal(await snapshotUnlessForeign(folder, new Map([['a/b', 3]])), null);
    await mkdir(join(folder, 'a', 'x'));
    assert.equal(await snapshotUnlessForeign(folder, files), null);
  });

  test('still holds after the folder was renamed, and no longer after anything was added, however deep', async () => {
    for (const added of ['x', 'a/x', 'a/b/x']) {
      const folder = join(place, 'p');
      await putFiles(folder, { 'a/b/c.m4s': 'abc' });
      // As if its files had been written long ago: the clock of a file system ticks in milliseconds.
      for (const path of ['a/b', 'a', '']) await utimes(join(folder, path), 5, 5);
      const look = await snapshotUnlessForeign(folder, files);
      assert.ok(look !== null);
      await rename(folder, join(place, 'q'));
      assert.equal(await isUnchangedSince(join(place, 'q'), look), true);
      await putFiles(join(place, 'q'), { [added]: 'theirs' });
      assert.equal(await isUnchangedSince(join(place, 'q'), look), false, added);
      await rm(join(place, 'q'), { recursive: true });
    }
  });
});
