import assert from 'node:assert/strict';
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { after, before, describe, type TestContext, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import { isExpiryOf } from '#inputs/http/http-errors.ts';
import { httpFileOpener } from '#inputs/http/http-file.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { clientFor, scratchFor } from './http-client-for-tests.ts';

const LARGE = randomBytes(9 * 1024 * 1024);
const KEY = 'takes/böse #1 100%.mp4';
const never = new AbortController().signal;
let s3: TestS3;
let bucket: string;

before(async () => {
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  await s3.client.putObject({ Bucket: bucket, Key: KEY, Body: LARGE });
});
after(() => s3.close());

describe('a presigned URL of a real S3 server', () => {
  test('is read in ranges, although it is signed for GET alone', async (t) => {
    const source = await open(t, presigned(KEY));
    assert.equal(source.name, 'böse #1 100%.mp4');
    assert.equal(source.localPath, undefined);
    const bytes = await readRange(source, 0, LARGE.length, never);
    assert.ok(bytes.equals(LARGE));
    const head = await fetch(presigned(KEY), { method: 'HEAD' });
    assert.equal(head.status, 403, 'the server would not have taken another method');
  });

  test('that has expired says so, and one that was changed is forbidden', async (t) => {
    await assert.rejects(open(t, presigned(KEY, -7200)), { reason: 'HTTP_LINK_EXPIRED' });
    await assert.rejects(
      open(
        t,
        presigned(KEY).replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      ),
      {
        reason: 'HTTP_FORBIDDEN',
      },
    );
    await assert.rejects(open(t, presigned('takes/missing.mp4')), { reason: 'HTTP_NOT_FOUND' });
  });

  test('whose object is replaced in the middle is an error', async (t) => {
    const Key = 'takes/replaced.mp4';
    await s3.client.putObject({ Bucket: bucket, Key, Body: LARGE });
    const source = await open(t, presigned(Key));
    await s3.client.putObject({ Bucket: bucket, Key, Body: randomBytes(LARGE.length) });
    await assert.rejects(readRange(source, 0, LARGE.length, never), { reason: 'SOURCE_CHANGED' });
  });
});

test('the end of a presigned URL is read from what it says', () => {
  const now = Date.parse('2026-11-21T12:00:00Z');
  for (const [query, expired] of [
    ['X-Amz-Date=20261121T110000Z&X-Amz-Expires=3599', true],
    ['X-Amz-Date=20261121T110000Z&X-Amz-Expires=3601', false],
    ['x-goog-date=20261121T110000Z&x-goog-expires=60', true],
    ['Expires=1795262399', true],
    ['Expires=1795262401', false],
    ['se=2026-11-21T11:59:59Z&sig=x', true],
    ['se=2026-11-21T12:00:01Z&sig=x', false],
    ['X-Amz-Date=yesterday&X-Amz-Expires=1&Expires=soon&se=', false],
    ['', false],
  ] as const) {
    assert.equal(isExpiryOf(new URL(`https://host/a?${query}`), '', now), expired, query);
  }
});

async function open(t: TestContext, url: string) {
  const context = { signal: never, ...(await scratchFor(t)) };
  const source = await httpFileOpener(clientFor(t))({ type: 'remote_file_url', url }, 0, context);
  t.after(() => source.close());
  return source;
}

/** A URL that is signed for GET (AWS Signature Version 4, query parameters), made so many seconds from now and good for an hour. */
function presigned(key: string, madeSeconds = 0): string {
  const { endpoint, region, accessKeyId, secretAccessKey } = s3.place;
  const date = `${new Date(Date.now() + madeSeconds * 1000).toISOString().replace(/[-:]|\.\d+/g, '')}`;
  const scope = [date.slice(0, 8), region, 's3', 'aws4_request'];
  const url = new URL(endpoint);
  url.pathname = [bucket, ...key.split('/')].map((segment) => `/${encodeURIComponent(segment)}`).join('');
  const query = Object.entries({
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': [accessKeyId, ...scope].join('/'),
    'X-Amz-Date': date,
    'X-Amz-Expires': '3600',
    'X-Amz-SignedHeaders': 'host',
  })
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
  const request = ['GET', url.pathname, query, `host:${url.host}\n`, 'host', 'UNSIGNED-PAYLOAD'].join('\n');
  const digest = createHash('sha256').update(request).digest('hex');
  const text = ['AWS4-HMAC-SHA256', date, scope.join('/'), digest].join('\n');
  const signingKey = scope.reduce<Buffer>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(),
    Buffer.from(`AWS4${secretAccessKey}`),
  );
  return `${url.origin}${url.pathname}?${query}&X-Amz-Signature=${createHmac('sha256', signingKey).update(text).digest('hex')}`;
}
