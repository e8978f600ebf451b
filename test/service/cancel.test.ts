import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeVideo } from '../../bench/media.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { makeFilm, temporaryFolder } from '../support/media/make-film.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { s3Settings } from './s3-settings.ts';

/** Long enough to be cancelled in the middle. */
const VIDEO_BYTES = 250e6;

const home = temporaryFolder();
const serviceHome = join(home, 'service');
const video = join(home, 'long.mp4');
let s3: TestS3;
let bucket: string;
let service: RunningService;

before(async () => {
  await writeVideo(video, VIDEO_BYTES);
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  service = await startService({ folder: serviceHome, settings: s3Settings(s3, bucket) });
});

after(async () => {
  await service?.stop();
  await s3?.close();
  rmSync(home, { recursive: true, force: true });
});

/** Cancels a job once it satisfies a condition, and returns what it ended as. */
async function cancelWhen(jobId: string, condition: () => boolean | Promise<boolean>) {
  await until(condition);
  assert.equal((await fetch(`${service.base}/v2/jobs/${jobId}`, { method: 'DELETE' })).status, 202);
  const job = await service.waitFor(jobId);
  assert.deepEqual([job.status, job.results.map((entry) => entry.status)], ['failed', ['cancelled']]);
}

const isUnderWay = async (jobId: string) => ((await service.lookUp(jobId)).progress?.bytes_done ?? 0) > 0;

function filesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Nothing is noted as staged, and nothing lies in the scratch space. */
function assertNothingStaged(): void {
  for (const name of ['staging', 'scratch', 'uploads']) assert.deepEqual(filesIn(join(serviceHome, 'data', name)), []);
}

describe('a job that is cancelled in the middle of its work', () => {
  test('leaves nothing of a film on the disk', async () => {
    const jobId = await service.submit('/v2/c2pa/video', {
      inputs: [{ type: 'local_file_path', path: video }],
      output: { type: 'local', name: 'film' },
    });
    await cancelWhen(jobId, () => isUnderWay(jobId));
    assert.deepEqual(filesIn(join(serviceHome, 'output', 'film')), []);
    assertNothingStaged();
  });

  test('leaves nothing of a film in a bucket, and no upload', async () => {
    const jobId = await service.submit('/v2/c2pa/video', {
      inputs: [{ type: 'local_file_path', path: video }],
      output: { type: 's3', bucket, name: 'film' },
    });
    const uploads = async () => (await s3.client.listMultipartUploads({ Bucket: bucket })).Uploads ?? [];
    await cancelWhen(jobId, async () => (await uploads()).length > 0);
    assert.deepEqual(await uploads(), []);
    const { Contents = [] } = await s3.client.listObjectsV2({ Bucket: bucket, Prefix: 'film' });
    assert.deepEqual(Contents, []);
    assertNothingStaged();
  });

  test('ends the packager, and leaves nothing of the publication', async () => {
    const folder = join(home, 'sources');
    mkdirSync(folder);
    makeFilm(folder);
    await writeVideo(join(folder, 'long.mp4'), VIDEO_BYTES);
    const jobId = await service.submit('/v2/package', {
      inputs: [{ type: 'local_folder_path', path: folder }],
      output: { type: 'local', name: 'package' },
    });
    await until(async () => (await service.lookUp(jobId)).status !== 'queued');
    await sleep(Math.random() * 200);
    await fetch(`${service.base}/v2/jobs/${jobId}`, { method: 'DELETE' });
    const { status } = await service.waitFor(jobId);
    assert.equal(status, 'failed');
    await until(() => programsThatWorkOn(folder).length === 0);
    assert.deepEqual(filesIn(join(serviceHome, 'output', 'package')), []);
    assertNothingStaged();
  });

  test('does not keep the next one from being done', async () => {
    const job = await service.runSync('/v2/sync/c2pa/video', {
      inputs: [{ type: 'local_file_path', path: video }],
      output: { type: 'local', name: 'film' },
    });
    assert.equal(job.status, 'succeeded');
  });
});

/** The processes, other than the service and its workers, that were started with a path in a folder. */
function programsThatWorkOn(folder: string): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(folder);
    } catch {
      return false; // It ended in the meantime.
    }
  });
}
