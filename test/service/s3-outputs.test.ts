import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { writtenBytesDuring } from '../../bench/disk-writes.ts';
import { writeVideo } from '../../bench/media.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import { makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import { assertSignedPublication, type Files } from '../support/publications/signed-publication.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { s3Settings } from './s3-settings.ts';
import { flipped, MISMATCH, told } from './told-origin.ts';

const NO_READ_BACK = { SERVICE__SIGNING__VERIFY_OUTPUTS: 'false' };
const PATTERNS = { playlist: '*.m3u8', init: 'init*', frag: '*.m4s' };

/** Several times what the job's record and the notes take. */
const FILM_BYTES = 20e6;
const RECORD_BYTES = 3e6;

const folder = temporaryFolder();
const publication = makeFfmpegHls(makeFilm(folder), join(folder, 'evening'));
const film = join(folder, 'large.mp4');

let s3: TestS3;
let bucket: string;

before(async () => {
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  await writeVideo(film, FILM_BYTES);
  await s3.client.putObject({ Bucket: bucket, Key: 'in/film.mp4', Body: readFileSync(film) });
  for (const [path, Body] of Object.entries(filesAt(publication))) {
    await s3.client.putObject({ Bucket: bucket, Key: `in/evening/${path}`, Body });
  }
});
after(() => s3.close());

describe('from bucket to bucket, without read-back,', () => {
  let service: RunningService;

  before(async () => {
    const settings = { ...s3Settings(s3, bucket), ...NO_READ_BACK };
    service = await startService({ folder: join(folder, 'one-pass'), settings });
    // The worker, the store and everything else that is made once.
    await sign(service, filmTo('warm-up'));
  });
  after(() => service.stop());
  /** A folder that is made or removed in it would show. */
  const scratchChangedAt = () => statSync(join(folder, 'one-pass', 'data', 'scratch')).mtimeMs;

  test('a film is signed without touching the local disk', async (t) => {
    const untouched = scratchChangedAt();
    const written = await writtenBytesDuring(service.pid, () => sign(service, filmTo('one-pass')));
    t.diagnostic(`${written} bytes were written to disks for a film of ${FILM_BYTES}`);
    assert.ok(written < RECORD_BYTES, `${written} bytes`);
    assert.equal(scratchChangedAt(), untouched);
    await assertValid(await objectAt('one-pass/film_c2pa.mp4'), 'video/mp4');
  });

  test('a publication is signed without touching the local disk, and replaced', async (t) => {
    const untouched = scratchChangedAt();
    const written = await writtenBytesDuring(service.pid, () => sign(service, publicationTo('twice')));
    t.diagnostic(`${written} bytes were written to disks`);
    assert.equal(scratchChangedAt(), untouched);
    await assertSignedPublication(filesAt(publication), PATTERNS, await objectsUnder('twice/evening/'));
    await sign(service, publicationTo('twice'));
    await assertSignedPublication(filesAt(publication), PATTERNS, await objectsUnder('twice/evening/'));
  });

  test('a film whose parent and source carry manifests is staged for the SDK, and nothing stays behind', async () => {
    const signed = { type: 'remote_file_url', url: `s3://${bucket}/warm-up/film_c2pa.mp4` };
    await sign(service, {
      path: '/v2/sync/c2pa/video',
      body: {
        inputs: [signed],
        output: { type: 's3', bucket, prefix: 'again' },
        params: { parent: { type: 'file', source: signed } },
      },
    });
    await assertValid(await objectAt('again/film_c2pa_c2pa.mp4'), 'video/mp4');
    assert.deepEqual(Object.keys(filesAt(join(folder, 'one-pass', 'data', 'scratch'))), []);
  });
});

describe('from bucket to bucket, with read-back,', () => {
  let service: RunningService;
  before(async () => {
    service = await startService({ folder: join(folder, 'checked'), settings: s3Settings(s3, bucket) });
  });
  after(() => service.stop());

  test('a publication whose fragment was altered in the bucket is not vouched for when it is signed again', async () => {
    await sign(service, publicationTo('altered'));
    const Key = 'altered/evening/seg_lo_3.m4s';
    await s3.client.putObject({ Bucket: bucket, Key, Body: flipped(await objectAt(Key)) });
    const { path, body } = publicationTo('again', 'altered/evening');
    const job = await service.runSync(path, { ...body, output: { type: 'local' } });
    const { codes, allActionsIncluded, warnings } = await told(job, PATTERNS);
    assert.ok(codes.includes(MISMATCH) && !codes.includes('assertion.bmffHash.match'), codes.join());
    assert.equal(allActionsIncluded, false);
    for (const name of [/seg_lo_3\.m4s/, /init_lo\.mp4/])
      assert.ok(
        warnings.some((warning) => name.test(warning)),
        warnings.join('\n'),
      );
  });

  test('films and publications are staged, checked, delivered and removed', async () => {
    await sign(service, filmTo('checked'));
    await sign(service, publicationTo('checked'));
    await assertValid(await objectAt('checked/film_c2pa.mp4'), 'video/mp4');
    await assertSignedPublication(filesAt(publication), PATTERNS, await objectsUnder('checked/evening/'));
    assert.deepEqual(Object.keys(filesAt(join(folder, 'checked', 'data', 'scratch'))), []);
  });
});

describe('A bucket that cannot be written', () => {
  test('stops the start, and is named', async () => {
    const settings = s3Settings(s3, 'attestream-missing');
    await assert.rejects(startService({ folder: join(folder, 'unwritable'), settings }));
    const log = readFileSync(join(folder, 'unwritable', 'service.log'), 'utf8');
    assert.match(log, /"reason":"S3_PROBE_FAILED"/);
    assert.match(log, /attestream-missing/);
  });
});

interface SyncRequest {
  readonly path: string;
  readonly body: object;
}

function filmTo(prefix: string): SyncRequest {
  const inputs = [{ type: 'remote_file_url', url: `s3://${bucket}/in/film.mp4` }];
  return { path: '/v2/sync/c2pa/video', body: { inputs, output: { type: 's3', bucket, prefix } } };
}

function publicationTo(prefix: string, source = 'in/evening'): SyncRequest {
  return {
    path: '/v2/sync/c2pa/fragmented',
    body: {
      inputs: [{ type: 'remote_folder_url', url: `s3://${bucket}/${source}/` }],
      output: { type: 's3', bucket, prefix },
      params: {
        playlist_pattern: PATTERNS.playlist,
        init_pattern: PATTERNS.init,
        frag_pattern: PATTERNS.frag,
      },
    },
  };
}

async function sign(service: RunningService, { path, body }: SyncRequest): Promise<void> {
  const { results } = await service.runSync(path, body);
  assert.equal(results[0]?.status, 'succeeded', results[0]?.error);
}

async function objectAt(Key: string): Promise<Buffer> {
  const { Body } = await s3.client.getObject({ Bucket: bucket, Key });
  return Buffer.from((await Body?.transformToByteArray()) ?? []);
}

async function objectsUnder(Prefix: string): Promise<Files> {
  const { Contents = [] } = await s3.client.listObjectsV2({ Bucket: bucket, Prefix });
  const files = Contents.map(async ({ Key = '' }) => [Key.slice(Prefix.length), await objectAt(Key)] as const);
  return Object.fromEntries(await Promise.all(files));
}
