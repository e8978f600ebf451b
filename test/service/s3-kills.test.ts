import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { writeVideo } from '../../bench/media.ts';
import { startService } from '../../scripts/running-service.ts';
import { assertValid } from '../formats/judges.ts';
import { openTestS3, type TestS3 } from '../s3/open-test-s3.ts';
import { s3Settings } from './s3-settings.ts';

const KILLING_SERVICE = fileURLToPath(new URL('./killing-service.ts', import.meta.url));

/** Several parts, and a rest. */
const VIDEO_BYTES = 30e6;

describe('A service that is killed while a film goes from a bucket to a bucket', () => {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-s3-kills-'));
  let s3: TestS3;
  let bucket: string;

  before(async () => {
    s3 = await openTestS3();
    bucket = await s3.createBucket();
    const video = join(folder, 'film.mp4');
    await writeVideo(video, VIDEO_BYTES);
    await s3.client.putObject({ Bucket: bucket, Key: 'in/film.mp4', Body: readFileSync(video) });
  });
  after(async () => {
    await s3.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const uploadsTo = async (prefix: string) => {
    const { Uploads = [] } = await s3.client.listMultipartUploads({ Bucket: bucket, Prefix: prefix });
    return Uploads.map(({ UploadId }) => UploadId);
  };

  for (const [phase, settings] of [
    ['staged', { SERVICE__SIGNING__VERIFY_OUTPUTS: 'false' }],
    ['copied', { SERVICE__SIGNING__VERIFY_OUTPUTS: 'false' }],
    ['copied', {}],
    ['sealed', {}],
    ['verified', {}],
    ['delivered', {}],
  ] as const) {
    const how = 'SERVICE__SIGNING__VERIFY_OUTPUTS' in settings ? 'never on the host' : 'read back on the host';
    test(`and is ${phase}, ${how}, delivers it once after the next start, and leaves no upload but others'`, async () => {
      const name = `${phase}-${Object.keys(settings).length}`;
      const home = join(folder, name);
      const key = `${name}/film_c2pa.mp4`;
      const body = {
        inputs: [{ type: 'remote_file_url', url: `s3://${bucket}/in/film.mp4` }],
        output: { type: 's3', bucket, prefix: name },
      };
      const foreign = await s3.client.createMultipartUpload({ Bucket: bucket, Key: key });
      const common = { ...s3Settings(s3, bucket), ...settings };
      const killed = await startService({
        folder: home,
        program: KILLING_SERVICE,
        settings: { ...common, KILL_AT: phase },
      });
      const jobId = await killed.submit('/v2/c2pa/video', body);
      await killed.ended;
      // Half of the parts are there, and nobody knows the upload but the journal.
      if (phase === 'copied') assert.equal((await uploadsTo(name)).length, 2);

      await using service = await startService({ folder: home, settings: common });
      const job = await service.waitFor(jobId);

      assert.equal(job.status, 'succeeded', job.results[0]?.error);
      assert.equal(job.results[0]?.output_path, `s3://${bucket}/${key}`);
      const { Contents = [] } = await s3.client.listObjectsV2({ Bucket: bucket, Prefix: name });
      assert.deepEqual(
        Contents.map(({ Key }) => Key),
        [key],
      );
      assert.deepEqual(await uploadsTo(name), [foreign.UploadId]);
      assert.deepEqual(readdirSync(join(home, 'data', 'uploads')), []);
      assert.deepEqual(scratchFiles(home), []);
      const { Body } = await s3.client.getObject({ Bucket: bucket, Key: key });
      await assertValid(Buffer.from((await Body?.transformToByteArray()) ?? []), 'video/mp4');
    });
  }
});

function scratchFiles(home: string): string[] {
  try {
    return readdirSync(join(home, 'data', 'scratch'));
  } catch {
    return []; // Nothing was ever put there.
  }
}
