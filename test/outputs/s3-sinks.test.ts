import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { FolderSink } from '#outputs/output-sink.ts';
import { parseS3Url } from '#s3/s3-address.ts';
import { byteSinkContract } from '../bytes/byte-sink-contract.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { folderSinkContract } from './folder-sink-contract.ts';
import { type Files, fill, NEW, OLD } from './publication-files.ts';
import { key, openS3Place, type S3Place } from './s3-place.ts';

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
    const destination = place.sink.destinationOf(place.output, 'clip_c2pa.mp4');
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
    const destination = place.sink.destinationOf(place.output, 'large.mp4');
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

folderSinkContract('a folder in S3', async () => {
  const place = await openS3Place(s3, bucket, { readBack: true });
  const destination = place.sink.destinationOf(place.output, 'talk');
  return {
    showsNewMedia: true,
    stage: (sizeBytes) => place.sink.stageFolder(destination, sizeBytes, key, never, place.scratch),
    delivered: () => place.objectsIn(destination),
    leftovers: () => place.leftovers(),
    cleanUp: () => place.cleanUp(),
  };
});

describe('a publication in S3', () => {
  test('keeps what others put beside it and changed of it, and loses what it no longer has', () =>
    withPlace(async (place, destination) => {
      await deliver(place, destination, OLD);
      await put(destination, { 'notes.txt': 'theirs', 'gone/a.vtt': 'edited by others' });
      await deliver(place, destination, NEW);
      const foreign = { 'notes.txt': 'theirs', 'gone/a.vtt': 'edited by others' };
      assert.deepEqual(await place.objectsIn(destination), { ...NEW, ...foreign });
      assert.deepEqual(await place.leftovers(), []);
    }));

  test('that is given up leaves what stood there before as it was, foreign or its own', () =>
    withPlace(async (place, destination) => {
      await deliver(place, destination, OLD);
      await put(destination, { 'v/720/2.m4s': 'theirs' });
      const before = await place.objectsIn(destination);
      const sink = await fill(await stage(place, destination), NEW);
      await sink.discard();
      assert.deepEqual(await place.objectsIn(destination), before);
      assert.deepEqual(await place.leftovers(), []);
    }));

  test('has large files, which are uploaded in parts, and none of whose parts is left when it is given up', () =>
    withPlace(async (place, destination) => {
      const large = randomBytes(12 * MIB)
        .toString('latin1')
        .replaceAll(/[^ -~]/g, 'x');
      await deliver(place, destination, { 'a.m4s': large, 'index.m3u8': large });
      assert.deepEqual(await place.objectsIn(destination), { 'a.m4s': large, 'index.m3u8': large });
      const half = await fill(await stage(place, destination), { 'a.m4s': `${large}!`, 'new.m4s': large });
      await half.discard();
      assert.deepEqual(await place.objectsIn(destination), { 'a.m4s': large, 'index.m3u8': large });
      assert.deepEqual(await place.leftovers(), []);
    }));

  test('tells players what each of its files is', () =>
    withPlace(async (place, destination) => {
      const types = {
        'master.m3u8': 'application/vnd.apple.mpegurl',
        'manifest.mpd': 'application/dash+xml',
        'v/init.mp4': 'video/mp4',
        'v/1.m4s': 'video/iso.segment',
        'text/de.vtt': 'text/vtt',
      };
      await deliver(place, destination, Object.fromEntries(Object.keys(types).map((path) => [path, 'x'])));
      for (const [path, type] of Object.entries(types)) {
        const Key = `${parseS3Url(destination).key}/${path}`;
        assert.equal((await s3.client.headObject({ Bucket: bucket, Key })).ContentType, type);
      }
    }));
});

async function withPlace(use: (place: S3Place, destination: string) => Promise<void>): Promise<void> {
  const place = await openS3Place(s3, bucket, { readBack: false });
  try {
    await use(place, place.sink.destinationOf(place.output, 'talk'));
  } finally {
    await place.cleanUp();
  }
}

function stage(place: S3Place, destination: string): Promise<FolderSink> {
  return place.sink.stageFolder(destination, 100, key, never, place.scratch);
}

async function deliver(place: S3Place, destination: string, files: Files): Promise<void> {
  await (await fill(await stage(place, destination), files)).commit(never);
}

/** Puts objects as anybody else would. */
async function put(destination: string, files: Files): Promise<void> {
  for (const [path, Body] of Object.entries(files)) {
    await s3.client.putObject({ Bucket: bucket, Key: `${parseS3Url(destination).key}/${path}`, Body });
  }
}
