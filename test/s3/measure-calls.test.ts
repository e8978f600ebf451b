import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connectS3 } from '#s3/s3-connection.ts';
import { callRecorder } from '#telemetry/run-report.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';

describe('calls of S3', () => {
  let s3: TestS3;

  before(async () => {
    s3 = await openTestS3();
  });
  after(() => s3.close());

  test('are measured by the name of the command, also those that fail', async () => {
    const Bucket = await s3.createBucket();
    const { sdk, client } = await connectS3(s3.settings);
    callRecorder.take();
    await client.send(new sdk.PutObjectCommand({ Bucket, Key: 'a', Body: 'b' }));
    await client.send(new sdk.GetObjectCommand({ Bucket, Key: 'a' })).then(({ Body }) => Body?.transformToString());
    await assert.rejects(client.send(new sdk.GetObjectCommand({ Bucket, Key: 'nothing' })));
    assert.deepEqual(
      Object.entries(callRecorder.take()).map(([name, { durationsMs }]) => [name, durationsMs.length]),
      [
        ['s3 PutObject', 1],
        ['s3 GetObject', 2],
      ],
    );
  });
});
