import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JobResultResponse } from '#contract/job.ts';
import { writeSounds } from '../../bench/media.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { startFaultyProxy } from '../support/servers/faulty-s3-proxy.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { s3Settings } from './s3-settings.ts';

const home = temporaryFolder();
const SECRET = 'secret-that-nobody-may-see';
let s3: TestS3;
let bucket: string;
let service: RunningService;

before(async () => {
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  for (const Key of ['fine.wav', 'denied/a.wav']) {
    await s3.client.putObject({ Bucket: bucket, Key, Body: smallWav() });
  }
  await s3.client.putObject({ Bucket: bucket, Key: 'text.wav', Body: 'no media' });
  const resource = `arn:aws:s3:::${bucket}/denied/*`;
  const statement = { Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource: resource };
  const policy = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
  await s3.client.putBucketPolicy({ Bucket: bucket, Policy: policy });
  service = await startService({
    folder: join(home, 'service'),
    settings: { ...s3Settings(s3, bucket) },
  });
});
after(async () => {
  await service.stop();
  await s3.close();
});

describe('A job with inputs from S3', () => {
  test('signs the good ones and says of each of the others what is wrong', async () => {
    const keys = ['fine.wav', 'missing.wav', 'denied/a.wav', 'text.wav'];
    const job = await sign(service, keys.map(s3Url), { type: 's3', bucket, prefix: 'mixed' });
    assert.deepEqual(reasonsOf(job), [undefined, 'S3_OBJECT_MISSING', 'S3_ACCESS_DENIED', 'FORMAT_UNKNOWN']);
    assert.equal(job.results[0]?.output_path, `s3://${bucket}/mixed/fine_c2pa.wav`);
    const { Uploads = [] } = await s3.client.listMultipartUploads({ Bucket: bucket });
    assert.deepEqual(Uploads, []);
  });

  test('fails where the parent is missing, and names it', async () => {
    const parent = { type: 'file', source: { type: 'remote_file_url', url: s3Url('no-parent.wav') } };
    const job = await sign(service, [s3Url('fine.wav')], { type: 'local' }, { parent });
    assert.deepEqual(reasonsOf(job), ['S3_OBJECT_MISSING']);
    assert.ok(job.results[0]?.error?.includes('no-parent.wav'));
  });

  test('fails where an object is replaced while it is read, and delivers nothing of either', async () => {
    const [earlier, later] = writeSounds(home, 2, 12e6).map((path) => readFileSync(path)) as [Buffer, Buffer];
    await s3.client.putObject({ Bucket: bucket, Key: 'changing.wav', Body: earlier });
    const proxy = await startFaultyProxy(s3.place.endpoint);
    const settings = s3Settings({ place: { ...s3.place, endpoint: proxy.endpoint } }, bucket);
    await using reader = await startService({ folder: join(home, 'changing'), settings });
    // The first answer holds the head; the others have to wait until the object is replaced.
    let ranges = 0;
    let replacing: Promise<unknown> | undefined;
    proxy.fault = async ({ method, url }) => {
      if (method !== 'GET' || !url?.includes('changing.wav') || ++ranges === 1) return null;
      replacing ??= s3.client.putObject({ Bucket: bucket, Key: 'changing.wav', Body: later });
      await replacing;
      return null;
    };
    const job = await sign(reader, [s3Url('changing.wav')], { type: 's3', bucket, prefix: 'changing' });
    await proxy.close();
    assert.deepEqual(reasonsOf(job), ['SOURCE_CHANGED']);
    const { Contents = [] } = await s3.client.listObjectsV2({ Bucket: bucket, Prefix: 'changing/' });
    const { Uploads = [] } = await s3.client.listMultipartUploads({ Bucket: bucket, Prefix: 'changing/' });
    assert.deepEqual([Contents, Uploads], [[], []]);
  });

  test('is refused with the index of the input that names a bucket outside the list', async () => {
    const error = await refusal(service, [s3Url('fine.wav'), 's3://somebody-elses/a.wav']);
    assert.partialDeepStrictEqual(error.details, { field: 'inputs[1].url', input_index: 1 });
    assert.equal(error.code, 'VALIDATION_FAILED');
  });

  test('is refused by a service that reads nothing from S3', async () => {
    await using off = await startService({ folder: join(home, 'off') });
    const error = await refusal(off, [s3Url('fine.wav')]);
    assert.deepEqual([error.code, error.details.input_index], ['VALIDATION_FAILED', 0]);
  });
});

describe('A service whose S3 credentials are wrong', () => {
  const wrong = [
    { what: 'an unknown access key', setting: { accessKeyId: 'nobody' } },
    { what: 'a wrong secret key', setting: { secretAccessKey: SECRET } },
  ];
  for (const { what, setting } of wrong) {
    test(`says so of ${what}, in words without a secret`, async () => {
      const settings = s3Settings({ place: { ...s3.place, ...setting } }, bucket);
      const inputsOnly = Object.entries(settings).filter(([key]) => !key.includes('OUTPUT_SINKS'));
      const noWait = { SERVICE__JOBS__OUTAGE_HOURS: '0' };
      await using broken = await startService({
        folder: join(home, what),
        settings: { ...Object.fromEntries(inputsOnly), ...noWait },
      });
      const job = await sign(broken, [s3Url('fine.wav')], { type: 'local' });
      assert.deepEqual(reasonsOf(job), ['S3_CREDENTIALS_REFUSED']);
      assert.ok(!JSON.stringify(job).includes(SECRET));
      assert.ok(!readFileSync(broken.logPath, 'utf8').includes(SECRET));
    });
  }
});

function s3Url(key: string): string {
  return `s3://${bucket}/${key}`;
}

function bodyOf(urls: readonly string[], output: object, params: object = {}): object {
  return { inputs: urls.map((url) => ({ type: 'remote_file_url', url })), output, params };
}

function sign(
  by: RunningService,
  urls: readonly string[],
  output: object,
  params?: object,
): Promise<JobResultResponse> {
  return by.runSync('/v2/sync/c2pa/audio', bodyOf(urls, output, params));
}

function reasonsOf({ results }: JobResultResponse): (string | undefined)[] {
  return results.map(({ error_details: details }) => details?.reason);
}

interface Refusal {
  readonly code: string;
  readonly details: { readonly field: string; readonly input_index: number };
}

async function refusal(by: RunningService, urls: readonly string[]): Promise<Refusal> {
  const answer = await fetch(`${by.base}/v2/sync/c2pa/audio`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(bodyOf(urls, { type: 'local' })),
  });
  assert.equal(answer.status, 400);
  return ((await answer.json()) as { error: Refusal }).error;
}
