import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connectS3 } from '#s3/s3-connection.ts';
import { openTestS3, type TestS3 } from './open-test-s3.ts';

let s3: TestS3;

before(async () => {
  s3 = await openTestS3();
});
after(() => s3.close());

describe('a connection to S3', () => {
  test('writes, reads and lists with the settings of the configuration', async () => {
    const bucket = await s3.createBucket();
    const { sdk, client } = await connectS3(s3.settings);
    await client.send(new sdk.PutObjectCommand({ Bucket: bucket, Key: 'a b/ü%20#?+.mp4', Body: 'content' }));
    const { Contents } = await client.send(new sdk.ListObjectsV2Command({ Bucket: bucket }));
    assert.deepEqual(
      Contents?.map(({ Key }) => Key),
      ['a b/ü%20#?+.mp4'],
    );
    const { Body } = await client.send(new sdk.GetObjectCommand({ Bucket: bucket, Key: 'a b/ü%20#?+.mp4' }));
    assert.equal(await Body?.transformToString(), 'content');
  });

  test('is one and the same for equal settings', async () => {
    assert.equal(await connectS3(s3.settings), await connectS3({ ...s3.settings }));
    assert.notEqual(await connectS3(s3.settings), await connectS3({ ...s3.settings, region: 'eu-central-1' }));
  });
});
