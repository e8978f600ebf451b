import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '#errors/app-error.ts';
import { decodedS3Address, parseS3Url, s3UrlOf } from '#s3/s3-address.ts';

describe('an address of S3', () => {
  test('has its key as it is written', () => {
    for (const key of [
      '',
      'a.mp4',
      'a b/ü.mp4',
      '100%.mp4',
      'a%2Fb',
      'a?b=c#d',
      '/lead',
      'a//b',
      'a/',
      '...',
      '.a',
      '~',
      'a@b:c',
    ]) {
      assert.deepEqual(parseS3Url(`s3://my.bucket-1/${key}`), { bucket: 'my.bucket-1', key });
    }
    assert.deepEqual(parseS3Url('S3://Old_Bucket'), { bucket: 'Old_Bucket', key: '' });
  });

  test('is read back from what is written, whatever the key', () => {
    const key = fc.string({ unit: 'grapheme', maxLength: 50 }).filter((text) => !/(^|\/)\.{1,2}(\/|$)|\0/.test(text));
    fc.assert(fc.property(key, (text) => assert.equal(parseS3Url(s3UrlOf({ bucket: 'bucket', key: text })).key, text)));
  });

  for (const url of [
    's3://',
    's3:///key',
    's3://ab/key',
    's3://-bucket/key',
    's3://buck et/key',
    's3://bucket:80/key',
    's3://user@bucket/key',
    's3://bücket/key',
  ]) {
    test(`is refused without a bucket: ${url}`, () => refuses(url));
  }

  for (const key of ['.', '..', '../a', 'a/..', 'a/./b', 'a\0b', 'ü'.repeat(513)]) {
    test(`is refused with the key ${JSON.stringify(key.slice(0, 10))}`, () => refuses(`s3://bucket/${key}`));
  }

  test('is decoded once, where that makes a difference and leads nowhere else', () => {
    assert.equal(decodedS3Address({ bucket: 'bucket', key: 'a%2520b%20c+d' })?.key, 'a%20b c+d');
    for (const key of ['plain', '100%', '%2e%2e/secret', '%00']) {
      assert.equal(decodedS3Address({ bucket: 'bucket', key }), null, key);
    }
  });
});

function refuses(url: string): void {
  assert.throws(
    () => parseS3Url(url),
    (error) => error instanceof AppError && error.reason === 'S3_ADDRESS_INVALID',
  );
}
