import assert from 'node:assert/strict';
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, test } from 'node:test';
import fc from 'fast-check';
import { doOverlap, foldersAbove, isSameOrInside, nearestRealPath, PathSet } from '#bytes/path-overlap.ts';

describe('two paths', () => {
  for (const [path, folder, expected] of [
    ['/a/b', '/a', true],
    ['/a', '/a', true],
    ['/a', '/', true],
    ['/', '/', true],
    ['/ab', '/a', false],
    ['/a', '/a/b', false],
  ] as const) {
    it(`${path} is ${expected ? '' : 'not '}${folder} or inside it`, () => {
      assert.equal(isSameOrInside(path, folder), expected);
    });
  }
});

describe('the folders above a path', () => {
  for (const [path, expected] of [
    ['/a/b/c', ['/a/b', '/a', '/']],
    ['/a', ['/']],
    ['/', []],
  ] as const) {
    it(`of ${path} are listed from the nearest to the root`, () => {
      assert.deepEqual([...foldersAbove(path)], expected);
    });
  }
});

describe('a set of paths', () => {
  it('forgets what is deleted', () => {
    const paths = new PathSet<number>();
    paths.add('/a/b', 1);
    paths.add('/a/c', 2);
    paths.delete('/a/b');
    assert.deepEqual([...paths.overlapping('/a')], [2]);
    paths.delete('/a/c');
    assert.deepEqual([...paths.overlapping('/a'), ...paths.overlapping('/')], []);
  });

  it('finds what a comparison of every pair finds, whatever was added and deleted', () => {
    const path = fc.array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 4 }).map((names) => `/${names.join('/')}`);
    const step = fc.record({ path, isAdded: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), path, (steps, asked) => {
        const paths = new PathSet<string>();
        const expected = new Set<string>();
        for (const { path, isAdded } of steps) {
          if (isAdded) paths.add(path, path);
          else paths.delete(path);
          if (isAdded) expected.add(path);
          else expected.delete(path);
        }
        const overlapping = [...expected].filter((each) => doOverlap(each, asked));
        assert.deepEqual([...paths.overlapping(asked)].sort(), overlapping.sort());
      }),
      { numRuns: 1000 },
    );
  });
});

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
