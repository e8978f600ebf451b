import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { byteSinkContract } from '../bytes/byte-sink-contract.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { key, openS3Place } from './s3-place.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;

let s3: TestS3;
let bucket: string;

before(async () => {
  s3 = await openTestS3();
  bucket = await s3.createBucket();
});
after(() => s3.close());

for (const readBack of [false, true]) {
  byteSinkContract(`a file in S3, ${readBack ? 'read back on this host' : 'never on this host'}`, async () => {
    const place = await openS3Place(s3, bucket, { readBack });
    const destination = place.sink.fileDestination(place.output, 'clip_c2pa.mp4');
    return {
      stage: (sizeBytes) => place.sink.stageFile(destination, sizeBytes, key, never, place.scratch),
      delivered: () => place.objectAt(destination),
      leftovers: () => place.leftovers(),
      cleanUp: () => place.cleanUp(),
    };
  });
}

describe('a large file in S3', () => {
  test('is put together from parts that come in any order, and the one with the hole last', async () => {
    const place = await openS3Place(s3, bucket, { readBack: false });
    const destination = place.sink.fileDestination(place.output, 'large.mp4');
    const content = randomBytes(45 * MIB + 77);
    const sink = await place.sink.stageFile(destination, content.length, key, never, place.scratch);
    const positions = Array.from({ length: 46 }, (_, index) => index * MIB).filter((position) => position !== 3 * MIB);
    await Promise.all(
      positions.reverse().map((at) => sink.write(content.subarray(at, Math.min(at + MIB, content.length)), at, never)),
    );
    await sink.write(content.subarray(3 * MIB, 4 * MIB), 3 * MIB, never);
    await sink.seal(never);
    assert.equal(await place.objectAt(destination), null);
    await sink.commit(never);
    assert.ok((await place.objectAt(destination))?.equals(content));
    assert.deepEqual(await place.leftovers(), []);
    const [, , ...rest] = destination.split('/');
    const head = await s3.client.headObject({ Bucket: bucket, Key: rest.slice(1).join('/') });
    assert.equal(head.ContentType, 'video/mp4');
    await place.cleanUp();
  });
});
