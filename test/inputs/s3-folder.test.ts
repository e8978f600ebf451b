import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import type { FolderLimits } from '#inputs/input-opener.ts';
import type { S3InputSettings } from '#inputs/s3/s3-sources.ts';
import { openS3File, openS3Folder, s3FolderOpener } from '#inputs/s3/s3-sources.ts';
import { sourceFolderContract } from '../bytes/source-folder-contract.ts';
import { type FaultyProxy, startFaultyProxy } from '../support/servers/faulty-s3-proxy.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';

const never = new AbortController().signal;
const wide: FolderLimits = { maxFiles: 100_000, maxBytes: 1024 ** 4, maxDepth: 16 };
let s3: TestS3;
let proxy: FaultyProxy;
let bucket: string;

before(async () => {
  s3 = await openTestS3();
  proxy = await startFaultyProxy(s3.place.endpoint);
  bucket = await s3.createBucket();
});
after(async () => {
  await proxy.close();
  await s3.close();
});

sourceFolderContract('a prefix of S3', async (files) => {
  const prefix = randomUUID();
  await putAll(prefix, files);
  return { folder: await open(prefix), cleanUp: async () => undefined };
});

describe('opening a folder of S3', () => {
  test('lists more keys than one page holds', async () => {
    const names = Array.from({ length: 1203 }, (_, index) => `seg-${index}.m4s`);
    await mapConcurrent(names, 16, (name) => put(`many/${name}`, Buffer.from(name)));
    const folder = await open('many');
    assert.deepEqual(new Set(folder.files.map(({ path }) => path)), new Set(names));
    assert.equal(folder.files.length, names.length);
  });

  test('takes keys with spaces, percent signs, plus signs, umlauts, dots and control characters as they are', async () => {
    const names = [
      'a b.m4s',
      '100%.m4s',
      'a%20b.m4s',
      'a+b.m4s',
      'ü/é.m4s',
      '..a',
      'b..',
      '.hidden',
      'a\u0001b',
      "<&>'.m4s",
      'x?y#z',
    ];
    const prefix = 'odd names +%20';
    await putAll(prefix, Object.fromEntries(names.map((name) => [name, Buffer.from(name)])));
    const folder = await open(`${prefix}/`);
    assert.deepEqual(new Set(folder.files.map(({ path }) => path)), new Set(names));
    for (const name of names) {
      const source = await folder.open(name, never);
      assert.equal((await readRange(source, 0, source.sizeBytes, never)).toString(), name);
    }
  });

  test('takes the objects behind the slash alone, and passes over the markers of empty folders', async () => {
    await putAll('marked', { '': Buffer.alloc(0), 'a.mp4': Buffer.from('a'), 'sub/': Buffer.alloc(0) });
    await put('marked-not/b.mp4', Buffer.from('b'));
    assert.deepEqual((await open('marked')).files, (await open('marked/')).files);
    assert.deepEqual(
      (await open('marked')).files.map(({ path }) => path),
      ['a.mp4'],
    );
  });

  test('says that an address is that of an object', async () => {
    await put('one/master.m3u8', Buffer.from('#EXTM3U'));
    await refuses('SOURCE_NOT_FOLDER', s3Url('one/master.m3u8'));
    await refuses('FOLDER_EMPTY', s3Url('one/master'));
  });

  test('is not called empty where the server does not say if there is an object at its address', async () => {
    proxy.fault = ({ headers }) => (headers.range === undefined ? null : { status: 400, code: 'InvalidArgument' });
    try {
      await refuses('S3_REQUEST_REFUSED', s3Url('nothing'), proxied());
    } finally {
      proxy.fault = () => null;
    }
  });

  test('finds a prefix that the caller encoded', async () => {
    await put('with space/a.mp4', Buffer.from('a'));
    assert.equal((await open('with%20space')).files.length, 1);
  });

  test('takes a whole bucket, and calls it by its name', async () => {
    const other = await s3.createBucket();
    await s3.client.putObject({ Bucket: other, Key: 'a/b.mp4', Body: 'b' });
    for (const url of [`s3://${other}`, `s3://${other}/`]) {
      const folder = await opened(url);
      assert.equal(folder.name, other);
      assert.deepEqual(
        folder.files.map(({ path }) => path),
        ['a/b.mp4'],
      );
    }
    await put('show/a.mp4', Buffer.from('a'));
    assert.equal((await opened(s3Url('show/'))).name, 'show');
  });

  for (const key of ['../up.m4s', 'a/../up.m4s', './here.m4s', '/leading.m4s', 'a//double.m4s', 'a/.']) {
    test(`refuses the key "${key}", which no folder could hold`, async () => {
      const prefix = randomUUID();
      await putAll(prefix, { 'a.mp4': Buffer.from('a'), [key]: Buffer.from('x') });
      await refuses('FOLDER_ENTRY_REFUSED', s3Url(prefix));
    });
  }

  test('holds the bounds of files, bytes and levels', async () => {
    await putAll('bound', { 'a.mp4': Buffer.from('aa'), 'x/y/z.mp4': Buffer.from('bb') });
    await openS3Folder(s3Url('bound'), 'bound', s3.settings, { maxFiles: 2, maxBytes: 4, maxDepth: 2 }, never);
    for (const bounds of [
      { ...wide, maxFiles: 1 },
      { ...wide, maxBytes: 3 },
      { ...wide, maxDepth: 1 },
    ]) {
      await refuses('FOLDER_TOO_LARGE', s3Url('bound'), s3.settings, bounds);
    }
  });

  test('tells nothing at all, a missing bucket, a refused bucket and a denied listing apart', async () => {
    await refuses('FOLDER_EMPTY', s3Url('nothing/here'));
    await refuses('S3_BUCKET_MISSING', `s3://no-such-bucket-${randomUUID()}`);
    await refuses('S3_BUCKET_REFUSED', s3Url('a'), { ...s3.settings, buckets: ['other'] });
    await refuses('S3_ADDRESS_INVALID', s3Url('a/../b'));
    const denied = await s3.createBucket();
    const statement = { Effect: 'Deny', Principal: '*', Action: 's3:ListBucket', Resource: `arn:aws:s3:::${denied}` };
    const policy = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
    await s3.client.putBucketPolicy({ Bucket: denied, Policy: policy });
    await refuses('S3_ACCESS_DENIED', `s3://${denied}`);
  });

  test('asks for each small file once, and opens none before it is read', async () => {
    const prefix = randomUUID();
    await putAll(prefix, { 'a.m4s': randomBytes(2 * 1024 * 1024), 'b.m4s': randomBytes(10) });
    const folder = await openS3Folder(s3Url(prefix), 'x', proxied(), wide, never);
    proxy.requests.length = 0;
    const [a, b] = [await folder.open('a.m4s', never), await folder.open('b.m4s', never)];
    assert.deepEqual(proxy.requests, []);
    for (const source of [a, b]) {
      await readRange(source, 0, 8, never);
      await readRange(source, 0, source.sizeBytes, never);
    }
    assert.deepEqual(proxy.requests, [`GET /${bucket}/${prefix}/a.m4s`, `GET /${bucket}/${prefix}/b.m4s`]);
  });

  test('refuses what browsers decode to other bytes, on its own and in a folder', async () => {
    for (const encoding of ['br', 'GZIP', 'aws-chunked,zstd']) {
      const prefix = randomUUID();
      await put(`${prefix}/a.m4s`, Buffer.from('as it is signed'), encoding);
      const source = await (await open(prefix)).open('a.m4s', never);
      await assert.rejects(readRange(source, 0, 2, never), isA('S3_ENCODED'), encoding);
      await assert.rejects(openS3File(s3Url(`${prefix}/a.m4s`), 'a', s3.settings, never), isA('S3_ENCODED'), encoding);
    }
  });

  test('refuses what a website of the bucket redirects elsewhere', async () => {
    const prefix = randomUUID();
    await put(`${prefix}/a.m4s`, Buffer.from('as it is signed'));
    const headers = { 'content-range': 'bytes 0-14/15', 'x-amz-website-redirect-location': '/other.m4s' };
    const folder = await openS3Folder(s3Url(prefix), 'x', proxied(), wide, never);
    proxy.fault = ({ method }) =>
      method === 'GET' ? { status: 206, code: '', headers, body: 'as it is signed' } : null;
    try {
      const source = await folder.open('a.m4s', never);
      await assert.rejects(readRange(source, 0, 2, never), isA('S3_REDIRECTED'));
    } finally {
      proxy.fault = () => null;
    }
  });

  test('asks how an empty object is sent, of which nothing is read', async () => {
    const prefix = randomUUID();
    await put(`${prefix}/a.vtt`, Buffer.alloc(0));
    await put(`${prefix}/b.vtt`, Buffer.alloc(0), 'br');
    const folder = await openS3Folder(s3Url(prefix), 'x', proxied(), wide, never);
    assert.equal((await folder.open('a.vtt', never)).sizeBytes, 0);
    await assert.rejects(folder.open('b.vtt', never), isA('S3_ENCODED'));
    const other = { 'x-amz-website-redirect-location': '/other.vtt' };
    for (const [headers, body, reason] of [
      [other, '', 'S3_REDIRECTED'],
      [{ 'content-length': '5' }, 'other', 'SOURCE_CHANGED'],
    ] as const) {
      proxy.fault = ({ method }) => (method === 'HEAD' ? { status: 200, code: '', headers, body } : null);
      try {
        await assert.rejects(folder.open('a.vtt', never), isA(reason));
      } finally {
        proxy.fault = () => null;
      }
    }
  });

  test('reads what is sent as it is, whatever clients say of how they uploaded it', async () => {
    for (const encoding of ['', 'identity', 'aws-chunked', 'aws-chunked, identity']) {
      const prefix = randomUUID();
      await put(`${prefix}/a.m4s`, Buffer.from('as it is'), encoding);
      const source = await (await open(prefix)).open('a.m4s', never);
      assert.equal((await readRange(source, 0, 8, never)).toString(), 'as it is', encoding);
    }
  });

  test('finds out that a file changed since it was listed', async () => {
    const prefix = randomUUID();
    await putAll(prefix, { 'a.m4s': Buffer.from('before') });
    const folder = await open(prefix);
    await putAll(prefix, { 'a.m4s': Buffer.from('after!') });
    const source = await folder.open('a.m4s', never);
    await assert.rejects(readRange(source, 0, 6, never), isA('SOURCE_CHANGED'));
  });
});

async function putAll(prefix: string, files: Readonly<Record<string, Buffer>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) await put(`${prefix}/${path}`, content);
}

async function put(key: string, content: Buffer, encoding = ''): Promise<void> {
  const encoded = encoding === '' ? {} : { ContentEncoding: encoding };
  await s3.client.putObject({ Bucket: bucket, Key: key, Body: content, ...encoded });
}

function open(prefix: string) {
  return openS3Folder(s3Url(prefix), 'folder', s3.settings, wide, never);
}

function opened(url: string) {
  const context = { signal: never, scratch: new ScratchSpace({ dir: '/nowhere', dataDir: '/nowhere' }, KEY) };
  return s3FolderOpener(s3.settings, wide)({ type: 'remote_folder_url', url }, 0, context);
}

const KEY = { jobId: 'job', inputIndex: 0, attempt: 1 };

function s3Url(prefix: string): string {
  return `s3://${bucket}/${prefix}`;
}

function proxied(): S3InputSettings {
  return { ...s3.settings, endpoint_url: proxy.endpoint };
}

async function refuses(
  reason: Reason,
  url: string,
  settings: S3InputSettings = s3.settings,
  bounds: FolderLimits = wide,
): Promise<void> {
  await assert.rejects(openS3Folder(url, 'folder', settings, bounds, never), isA(reason));
}

function isA(reason: Reason): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof AppError, String(error));
    assert.equal(error.reason, reason, error.message);
    return true;
  };
}
