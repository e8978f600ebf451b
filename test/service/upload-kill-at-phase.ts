import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { InputPhase } from '#operations/operation.ts';
import { writeVideo } from '../../bench/media.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { KilledService } from './killed-service.ts';
import { s3Settings } from './s3-settings.ts';

/** More than the parts in memory and on their way: when all is copied, the upload has begun. */
const VIDEO_BYTES = 48e6;

/** Kills of a service: the phases at which it is killed, for outputs that are read back on the host and others. */
export type S3Kills = readonly (readonly [readBack: boolean, phases: readonly InputPhase[]])[];

/** Tests that a service that is killed while a film goes from bucket to bucket delivers it once after the next start. */
export function testS3Kills(kills: S3Kills): void {
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

  for (const [readBack, phases] of kills) {
    const how = readBack ? 'read back on the host' : 'never on the host';
    for (const phase of phases) {
      test(`A service killed while a film, ${how}, is ${phase} delivers it once after the next start, and leaves no upload but others'`, async (t) => {
        const settings = { ...s3Settings(s3, bucket), SERVICE__SIGNING__VERIFY_OUTPUTS: String(readBack) };
        const service = new KilledService({ folder: join(folder, `${phase}-${readBack}`), settings });
        t.after(() => service.stop());
        const prefix = `${readBack}/killed-when-${phase}`;
        const key = `${prefix}/film_c2pa.mp4`;
        const body = {
          inputs: [{ type: 'remote_file_url', url: `s3://${bucket}/in/film.mp4` }],
          output: { type: 's3', bucket, prefix },
        };
        const foreign = await s3.client.createMultipartUpload({ Bucket: bucket, Key: key });
        const jobId = await service.killBy('/v2/c2pa/video', body, async () => {
          // Half of the parts are there, and nobody knows the upload but the journal.
          if (phase === 'copied') assert.equal((await uploadsTo(prefix)).length, 2);
        });

        const result = await service.finish(jobId);

        assert.equal(result.status, 'succeeded', result.error);
        assert.equal(result.output_path, `s3://${bucket}/${key}`);
        const { Contents = [] } = await s3.client.listObjectsV2({ Bucket: bucket, Prefix: prefix });
        assert.deepEqual(
          Contents.map(({ Key }) => Key),
          [key],
        );
        assert.deepEqual(await uploadsTo(prefix), [foreign.UploadId]);
        const { Body } = await s3.client.getObject({ Bucket: bucket, Key: key });
        await assertValid(Buffer.from((await Body?.transformToByteArray()) ?? []), 'video/mp4');
      });
    }
  }
}
