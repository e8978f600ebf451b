import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '#errors/app-error.ts';
import { checkOutputSegments, outputLeaf, type S3OutputSpec, s3Destination } from '#outputs/output-path.ts';

describe('the place of an output in S3', () => {
  const place = (output: Partial<S3OutputSpec>, base = '') =>
    s3Destination({ type: 's3', bucket: 'bucket', ...output }, 'a.mp4', base);

  test('is composed of bucket, base, prefix, name and leaf, each where it is given', () => {
    assert.equal(place({}), 's3://bucket/a.mp4');
    assert.equal(place({ prefix: '/', name: null }), 's3://bucket/a.mp4');
    assert.equal(place({ prefix: 'x/y/', name: 'z' }, 'base/two'), 's3://bucket/base/two/x/y/z/a.mp4');
    assert.equal(place({ name: 'ä %20 #?+' }), 's3://bucket/ä %20 #?+/a.mp4');
  });

  test('is refused where the key would be too long or leave its base', () => {
    for (const prefix of ['p/'.repeat(600), '..', 'a\\b']) {
      assert.throws(
        () => place({ prefix }),
        (error: AppError) => error.reason === 'OUTPUT_SEGMENT_INVALID',
      );
    }
  });
});

describe('the leaf of a file output', () => {
  const mp4 = ['mp4', 'm4v'] as const;

  test('is derived from the name, or the name itself', () => {
    assert.deepEqual(outputLeaf('clip.mp4', mp4, 'derived'), { leaf: 'clip_c2pa.mp4', warnings: [] });
    assert.deepEqual(outputLeaf('clip.M4V', mp4, 'derived'), { leaf: 'clip_c2pa.M4V', warnings: [] });
    assert.deepEqual(outputLeaf('clip.mp4', mp4, 'in_place'), { leaf: 'clip.mp4', warnings: [] });
  });

  test('gets a missing extension silently and loses a wrong one with a warning', () => {
    assert.deepEqual(outputLeaf('clip', mp4, 'derived'), { leaf: 'clip_c2pa.mp4', warnings: [] });
    assert.deepEqual(outputLeaf('talk no. 5', mp4, 'in_place'), { leaf: 'talk no. 5.mp4', warnings: [] });
    assert.deepEqual(outputLeaf('clip 1.2', mp4, 'derived'), { leaf: 'clip 1.2_c2pa.mp4', warnings: [] });
    assert.deepEqual(outputLeaf('.mp4', mp4, 'derived'), { leaf: '.mp4_c2pa.mp4', warnings: [] });
    for (const [name, leaf] of [
      ['clip.avi', 'clip_c2pa.mp4'],
      ['get.php', 'get_c2pa.mp4'],
      ['song.mp3', 'song_c2pa.mp4'],
    ] as const) {
      const placed = outputLeaf(name, mp4, 'derived');
      assert.equal(placed.leaf, leaf);
      assert.equal(placed.warnings.length, 1);
    }
  });
});

describe('the prefix and name of an output', () => {
  test('become folders', () => {
    assert.deepEqual(checkOutputSegments(null), []);
    assert.deepEqual(checkOutputSegments({ type: 'local', prefix: '/', name: '' }), []);
    assert.deepEqual(checkOutputSegments({ type: 'local', prefix: 'a//b/./c/', name: 'Ünïcode 2024..final' }), [
      'a',
      'b',
      'c',
      'Ünïcode 2024..final',
    ]);
  });

  test('are refused where they lie so deep that making them would keep the disk busy', () => {
    assert.equal(checkOutputSegments({ type: 'local', prefix: 'a/'.repeat(32) }).length, 32);
    assert.throws(
      () => checkOutputSegments({ type: 'local', prefix: 'a/'.repeat(33) }),
      (error) => error instanceof AppError && error.reason === 'OUTPUT_SEGMENT_INVALID',
    );
  });

  test('are refused where they could lead anywhere else, with the field that is at fault', () => {
    for (const bad of [
      '..',
      '../a',
      'a/../b',
      'a/..',
      '/etc',
      '//',
      'a\\b',
      'a\0',
      'a\nb',
      'a\u0085',
      'a\u202eb',
      'a/\u2066b',
      '\u200f',
      '\ud800',
      'x'.repeat(256),
      'x/'.repeat(2000),
      '.attestream',
      `a/.attestream-${'0'.repeat(32)}.part/b`,
      '.ATTESTREAM-x',
      '.atte\u200dstream-x',
      '\uff0eatte\u017ftream-x',
    ]) {
      for (const part of ['prefix', 'name'] as const) {
        assert.throws(
          () => checkOutputSegments({ type: 'local', [part]: bad }),
          (error) => {
            assert.ok(error instanceof AppError && error.reason === 'OUTPUT_SEGMENT_INVALID', JSON.stringify(bad));
            assert.equal(error.location.field, `output.${part}`);
            return true;
          },
        );
      }
    }
  });

  test('never hold a segment that leads upwards or ends a path, whatever was asked for', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (prefix) => {
        try {
          for (const segment of checkOutputSegments({ type: 'local', prefix })) {
            assert.doesNotMatch(segment, /^\.{0,2}$|^\.attestream|[/\\\p{Cc}]/u);
          }
        } catch (error) {
          assert.ok(error instanceof AppError);
        }
      }),
    );
  });
});
