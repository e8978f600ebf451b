import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AppError } from '#errors/app-error.ts';
import { uploadNoteOf } from '#outputs/s3/upload-journal.ts';
import { type S3OutputSettings, S3Sink } from '#outputs/s3-sink.ts';
import { probeBuckets, recoverUploads } from '#outputs/s3-tasks.ts';
import { Launcher } from '#processes/launcher.ts';
import { parseS3Url } from '#s3/s3-address.ts';
import { ownAddress } from '../../scripts/own-address.ts';
import { startFaultyProxy } from '../support/servers/faulty-s3-proxy.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { fill, NEW } from './publication-files.ts';
import { key, openS3Place, type S3Place } from './s3-place.ts';

const MIB = 1024 * 1024;
const POLL_INTERVAL_MS = 10;
const HOUR_MS = 3_600_000;
const never = new AbortController().signal;

let s3: TestS3;
let bucket: string;
let settings: S3OutputSettings;

before(async () => {
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  settings = { ...s3.settings, buckets: [bucket], base_prefix: '', naming: 'derived' };
});
after(() => s3.close());

describe('recovering from a process that was killed', () => {
  test('ends the upload that it had under way, and nobody else’s to the same key', () =>
    withPlace(async (place) => {
      const destination = place.sink.destinationOf(place.output, 'film.mp4');
      const Key = parseS3Url(destination).key;
      const foreign = await s3.client.createMultipartUpload({ Bucket: bucket, Key });
      const sink = await place.sink.stageFile(destination, 20 * MIB, key, never, place.scratch);
      await sink.write(Buffer.alloc(17 * MIB), 0, never);
      await untilNoted(place, 1);
      assert.deepEqual(await recoverUploads(settings, place.dataDir), [destination]);
      assert.deepEqual(await uploadsTo(Key), [foreign.UploadId]);
      assert.deepEqual(await readdir(join(place.dataDir, 'uploads')), []);
      assert.deepEqual(await recoverUploads(settings, place.dataDir), []);
    }));

  test('finds an upload whose name the process never learnt, by its key and time, unless it could be another one', () =>
    withPlace(async (place) => {
      for (const [begun, ageMs, left] of [
        [1, 0, 0],
        [2, 0, 2],
        [1, HOUR_MS, 1],
      ] as const) {
        const at = { bucket, key: `${place.output.prefix}/${begun}-${ageMs}.mp4` };
        const { UploadId: other = '' } = await s3.client.createMultipartUpload({ Bucket: bucket, Key: at.key });
        await uploadNoteOf(place.dataDir, at.key, key).beginning(at, [other]);
        await ageNotes(place, ageMs);
        for (let count = 0; count < begun; count += 1) {
          await s3.client.createMultipartUpload({ Bucket: bucket, Key: at.key });
        }
        await s3.client.createMultipartUpload({ Bucket: bucket, Key: `${at.key}.longer` });
        await recoverUploads(settings, place.dataDir);
        const still = await uploadsTo(at.key);
        assert.equal(still.length, 1 + left);
        assert.ok(still.includes(other));
        assert.equal((await uploadsTo(`${at.key}.longer`)).length, 1);
      }
    }));

  test('takes back the objects of a publication that was not delivered, where nobody changed them since', () =>
    withPlace(async (place) => {
      const destination = place.sink.destinationOf(place.output, 'talk');
      const folderKey = parseS3Url(destination).key;
      await s3.client.putObject({ Bucket: bucket, Key: `${folderKey}/notes.txt`, Body: 'theirs' });
      await fill(await place.sink.stageFolder(destination, 100, key, never, place.scratch), NEW);
      await s3.client.putObject({ Bucket: bucket, Key: `${folderKey}/v/720/2.m4s`, Body: 'changed' });
      await recoverUploads(settings, place.dataDir);
      assert.deepEqual(await place.objectsIn(destination), { 'notes.txt': 'theirs', 'v/720/2.m4s': 'changed' });
      assert.deepEqual(await place.leftovers(), []);
    }));

  test('takes back the objects of a publication, however wrong the clock of the host is', () =>
    withPlace(async (place) => {
      const destination = place.sink.destinationOf(place.output, 'talk');
      await fill(await place.sink.stageFolder(destination, 100, key, never, place.scratch), NEW);
      await ageNotes(place, -HOUR_MS);
      await recoverUploads(settings, place.dataDir);
      assert.equal(await place.objectsIn(destination), null);
    }));

  test('takes back nothing that another node has delivered to the same place since, though its bytes are the same', () =>
    withPlace(async (place) => {
      const destination = place.sink.destinationOf(place.output, 'talk');
      await fill(await place.sink.stageFolder(destination, 100, key, never, place.scratch), NEW);
      const elsewhere = new S3Sink({ settings, dataDir: `${place.dataDir}-elsewhere`, readBack: false });
      const later = { ...key, attempt: key.attempt + 1 };
      const sink = await fill(await elsewhere.stageFolder(destination, 100, later, never, place.scratch), NEW);
      await sink.commit(never);
      assert.deepEqual(await recoverUploads(settings, place.dataDir), []);
      assert.deepEqual(await place.objectsIn(destination), NEW);
      assert.deepEqual(await place.leftovers(), []);
    }));

  test('takes back nothing of a publication that was being put in place of another one', () =>
    withPlace(async (place) => {
      const destination = place.sink.destinationOf(place.output, 'talk');
      const folder = parseS3Url(destination);
      const note = uploadNoteOf(place.dataDir, destination, key);
      const Metadata = { 'attestream-attempt': `${key.jobId}-${key.inputIndex}-${key.attempt}` };
      const put = async (path: string): Promise<void> => {
        const Key = `${folder.key}/${path}`;
        await note.putting(folder, Key);
        const { ETag = '' } = await s3.client.putObject({ Bucket: bucket, Key, Body: path, Metadata });
        await note.put(Key, ETag.replaceAll('"', ''));
      };
      await put('new.m4s');
      await note.committing();
      await put('new.m3u8');
      assert.deepEqual(await recoverUploads(settings, place.dataDir), []);
      assert.deepEqual(await place.objectsIn(destination), { 'new.m4s': 'new.m4s', 'new.m3u8': 'new.m3u8' });
      assert.deepEqual(await place.leftovers(), []);
    }));

  test('ends the other uploads where lines of a note are damaged, and where one upload cannot be ended', () =>
    withPlace(async (place) => {
      const begin = async (name: string, inputIndex: number): Promise<string> => {
        const at = { bucket, key: `${place.output.prefix}/${name}` };
        const { UploadId: uploadId = '' } = await s3.client.createMultipartUpload({ Bucket: bucket, Key: at.key });
        await uploadNoteOf(place.dataDir, name, { ...key, inputIndex }).begun({ ...at, uploadId });
        return at.key;
      };
      const folder = join(place.dataDir, 'uploads');
      const damaged = await begin('damaged.mp4', 0);
      const [note = ''] = await readdir(folder);
      await writeFile(join(folder, note), `\0\0\0\n${await readFile(join(folder, note), 'utf8')}`);
      const refused = await begin('refused.mp4', 1);
      const last = await begin('last.mp4', 2);
      const proxy = await startFaultyProxy(s3.place.endpoint);
      proxy.fault = ({ url = '' }) => (url.includes('refused.mp4') ? { status: 403, code: 'AccessDenied' } : null);
      try {
        const limited = { ...settings, endpoint_url: proxy.endpoint };
        await assert.rejects(recoverUploads(limited, place.dataDir), { reason: 'S3_ACCESS_DENIED' });
      } finally {
        await proxy.close();
      }
      const left = await Promise.all([damaged, refused, last].map(uploadsTo));
      assert.deepEqual(
        left.map(({ length }) => length),
        [0, 1, 0],
      );
      assert.equal((await readdir(folder)).length, 1);
    }));

  test('settles what one attempt left when asked for that, and understands a note that was torn', () =>
    withPlace(async (place) => {
      const destinations = [1, 2].map((number) => place.sink.destinationOf(place.output, `${number}.mp4`));
      for (const [inputIndex, destination] of destinations.entries()) {
        const staged = { ...key, inputIndex };
        const sink = await place.sink.stageFile(destination, 20 * MIB, staged, never, place.scratch);
        await sink.write(Buffer.alloc(8 * MIB), 0, never);
        await untilNoted(place, inputIndex + 1);
      }
      const folder = join(place.dataDir, 'uploads');
      for (const name of await readdir(folder)) await appendFile(join(folder, name), '{"kind":"put","ke');
      const [, second = ''] = destinations;
      assert.deepEqual(await recoverUploads(settings, place.dataDir, { ...key, inputIndex: 1 }), [second]);
      assert.equal((await readdir(folder)).length, 1);
    }));

  test('keeps its notes where S3 cannot be reached', () =>
    withPlace(async (place) => {
      const at = { bucket, key: 'unreachable.mp4' };
      await uploadNoteOf(place.dataDir, at.key, key).beginning(at, []);
      const { host, port } = ownAddress();
      const away = { ...settings, endpoint_url: `http://${host}:${port}`, bounds: { firstPauseMs: 10 } };
      await assert.rejects(recoverUploads(away, place.dataDir), ({ reason }: AppError) => reason === 'S3_UNREACHABLE');
      assert.equal((await readdir(join(place.dataDir, 'uploads'))).length, 1);
    }));
});

describe('trying buckets', () => {
  test('leaves nothing in them', async () => {
    await probeBuckets({ ...settings, base_prefix: 'some/base' });
    const { KeyCount } = await s3.client.listObjectsV2({ Bucket: bucket, Prefix: 'some/' });
    assert.equal(KeyCount, 0);
  });

  test('is given up where it takes too long', async () => {
    const silent = await startFaultyProxy(s3.place.endpoint);
    silent.fault = () => ({ silent: true });
    try {
      const unanswered = { ...settings, endpoint_url: silent.endpoint };
      await assert.rejects(probeBuckets(unanswered, new Launcher(), 1_000), /because S3 did not answer within 1 s/);
    } finally {
      await silent.close();
    }
  });

  test('fails with the error of the system where it gives no process', async () => {
    class Unable extends Launcher {
      override launch(): ChildProcess {
        return spawn('/no/such/program', [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
      }
    }
    await assert.rejects(probeBuckets(settings, new Unable()), /because of an error \(.*ENOENT\)/);
  });

  test('names the one that cannot be written', async () => {
    const buckets = [bucket, 'attestream-missing'];
    await assert.rejects(probeBuckets({ ...settings, buckets }), ({ reason, details }: AppError) => {
      assert.equal(reason, 'S3_PROBE_FAILED');
      assert.equal((details as { bucket: string }).bucket, 'attestream-missing');
      return true;
    });
  });
});

async function withPlace(use: (place: S3Place) => Promise<void>): Promise<void> {
  const place = await openS3Place(s3, bucket, { readBack: false });
  try {
    await use(place);
  } finally {
    await place.cleanUp();
  }
}

async function uploadsTo(wanted: string): Promise<string[]> {
  const { Uploads = [] } = await s3.client.listMultipartUploads({ Bucket: bucket, Prefix: wanted });
  return Uploads.flatMap(({ Key, UploadId = '' }) => (Key === wanted ? [UploadId] : []));
}

/** Uploads are begun behind the writer's back: waits until so many are noted. */
async function untilNoted({ dataDir }: S3Place, count: number): Promise<void> {
  const folder = join(dataDir, 'uploads');
  for (let begun = 0; begun < count; await sleep(POLL_INTERVAL_MS)) {
    const names = await readdir(folder).catch(() => []);
    const notes = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
    begun = notes.filter((note) => note.includes('"begun"')).length;
  }
}

/** Makes all notes tell of something that happened so long ago. */
async function ageNotes({ dataDir }: S3Place, ageMs: number): Promise<void> {
  const folder = join(dataDir, 'uploads');
  for (const name of await readdir(folder)) {
    const text = await readFile(join(folder, name), 'utf8');
    await writeFile(
      join(folder, name),
      text.replace(/"timeMs":(\d+)/g, (_, timeMs: string) => `"timeMs":${Number(timeMs) - ageMs}`),
    );
  }
}
