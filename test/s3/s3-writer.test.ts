import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connectS3 } from '#s3/s3-connection.ts';
import { S3Writer } from '#s3/s3-writer.ts';
import { type FaultyProxy, startFaultyProxy } from '../support/servers/faulty-s3-proxy.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';

let s3: TestS3;
let proxy: FaultyProxy;
let bucket: string;
let writer: S3Writer;

before(async () => {
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  proxy = await startFaultyProxy(s3.place.endpoint);
  writer = new S3Writer(
    await connectS3({ ...s3.settings, endpoint_url: proxy.endpoint, bounds: { firstPauseMs: 10 } }),
  );
});
after(async () => {
  await proxy.close();
  await s3.close();
});

describe('putting many objects at once', () => {
  test('outlasts a storm of refusals that meets them all', async () => {
    const refusals = new Map<string, number>();
    proxy.fault = ({ method, url = '' }) => {
      const made = refusals.get(url) ?? 0;
      refusals.set(url, made + 1);
      return method === 'PUT' && made < 6 ? { status: 503, code: 'SlowDown' } : null;
    };
    const names = Array.from({ length: 60 }, (_, index) => `storm/${index}`);
    await Promise.all(names.map((name) => put(name, name)));
    proxy.fault = () => null;
    assert.deepEqual(await keys(), names.toSorted());
    await writer.deleteObjects(
      bucket,
      names.map((key) => ({ key })),
    );
  });
});

describe('deleting objects', () => {
  test('leaves those that have changed, and passes over those that are gone', async () => {
    const etag = await put('changed', 'before');
    const gone = { key: 'gone', etag };
    await put('changed', 'after');
    const same = { key: 'same', etag: await put('same', 'as before') };
    await writer.deleteObjects(bucket, [{ key: 'changed', etag }, gone, same, { key: 'gone' }]);
    assert.deepEqual(await keys(), ['changed']);
    await writer.deleteObjects(bucket, [{ key: 'changed' }]);
    assert.deepEqual(await keys(), []);
  });

  test('is proven by MD5 too, for servers that know nothing newer', async () => {
    const proofs: unknown[] = [];
    proxy.fault = ({ method, headers }) => {
      if (method === 'POST') proofs.push(headers['content-md5']);
      return null;
    };
    await writer.deleteObjects(bucket, [{ key: 'nothing' }]);
    assert.match(String(proofs), /^[A-Za-z0-9+/]{22}==$/);
  });

  test('goes without conditions where the server finds them malformed', async () => {
    const object = { key: 'a', etag: await put('a', 'a') };
    let refusals = 1;
    proxy.fault = ({ method }) => (method === 'POST' && refusals-- > 0 ? { status: 400, code: 'MalformedXML' } : null);
    await writer.deleteObjects(bucket, [object]);
    assert.deepEqual(await keys(), []);
  });
});

async function put(key: string, content: string): Promise<string> {
  return await writer.put({ bucket, key }, Buffer.from(content), 'text/plain');
}

async function keys(): Promise<(string | undefined)[]> {
  const { Contents = [] } = await s3.client.listObjectsV2({ Bucket: bucket });
  return Contents.map(({ Key }) => Key);
}
