import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AppError } from '#errors/app-error.ts';
import { matchingPaths } from '#publications/path-patterns.ts';

describe('a glob', () => {
  test('matches in every subfolder where it has no slash, and from the folder on where it has one', () => {
    const paths = ['init.mp4', 'video/init.mp4', 'video/high/init.mp4', 'video/high/1.m4s'];
    const found = (pattern: string) => [...matchingPaths(paths, pattern, 'params.init_pattern')];
    assert.deepEqual(found('init.mp4'), paths.slice(0, 3));
    assert.deepEqual(found('*/init.mp4'), ['video/init.mp4']);
    assert.deepEqual(found('video/**/init.{mp4,cmfv}'), paths.slice(1, 3));
    assert.deepEqual(found('?.m4s'), ['video/high/1.m4s']);
    assert.deepEqual(found('[0-9].m4s'), ['video/high/1.m4s']);
  });

  test('that can be read in endlessly many ways is given up, and said to be at fault', () => {
    const paths = [`${'a'.repeat(200)}.m4s`];
    for (const pattern of ['(a+)+b', `${'*a'.repeat(20)}b`]) {
      assert.throws(
        () => matchingPaths(paths, pattern, 'params.frag_pattern', 50),
        ({ reason, location }: AppError) => reason === 'PATTERN_INVALID' && location.field === 'params.frag_pattern',
      );
    }
  });
});
