import assert from 'node:assert/strict';
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { nearestRealPath } from '#bytes/real-path.ts';

let folder: string;

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'attestream-real-path-')));
  await mkdir(join(folder, 'a/b/c'), { recursive: true });
  await writeFile(join(folder, 'a/file'), '');
  await symlink('a/b', join(folder, 'link'));
  await symlink('nowhere/at/all', join(folder, 'dangling'));
});

after(() => rm(folder, { recursive: true }));

describe('the nearest real path', () => {
  for (const [given, expected] of [
    ['', ''],
    ['a/b/c', 'a/b/c'],
    ['link/c', 'a/b/c'],
    ['link/c/missing/more', 'a/b/c/missing/more'],
    ['link/missing', 'a/b/missing'],
    ['missing', 'missing'],
    ['a/file/below/it', 'a/file/below/it'],
    ['dangling/more', 'dangling/more'],
    [`link/${'n/'.repeat(1500)}`, `a/b${'/n'.repeat(1500)}`],
    [`a/${'n'.repeat(300)}/x`, `a/${'n'.repeat(300)}/x`],
  ] as const) {
    test(`of ${given.slice(0, 30)} is ${expected.slice(0, 30)}`, async () => {
      assert.equal(await nearestRealPath(join(folder, given)), join(folder, expected));
    });
  }

  test('of the root, and of a missing file in it', async () => {
    assert.equal(await nearestRealPath('/'), '/');
    assert.equal(await nearestRealPath('/no-such-folder/at/all'), '/no-such-folder/at/all');
  });
});
