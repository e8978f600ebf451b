import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { writeVideo } from '../../bench/media.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { ffmpeg, makeFilm } from '../support/media/make-film.ts';
import { commandOf } from '../support/process-tree.ts';
import { answerFor, startServer, type TestServer } from '../support/servers/http-server.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { s3Settings } from './s3-settings.ts';

/** Its half is more than one part of an upload. */
const VIDEO_BYTES = 40e6;

const home = temporaryFolder();
const serviceHome = join(home, 'service');
const video = join(home, 'long.mp4');
/** Serves the video, of which it never sends what lies behind the middle. */
let holding: TestServer;
let s3: TestS3;
let bucket: string;
let service: RunningService;

before(async () => {
  await writeVideo(video, VIDEO_BYTES);
  const content = readFileSync(video);
  holding = await startServer((request, response) => {
    const { status, headers, part } = answerFor(request, { content });
    const start = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1]);
    const sent = part.subarray(0, Math.max(content.length / 2 - start, 0));
    response.writeHead(status, headers).write(sent);
    if (sent.length === part.length) response.end();
  });
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  // Packaging finds no other ffmpeg, and so does not end by itself.
  const stubs = join(home, 'stubs');
  mkdirSync(stubs);
  writeFileSync(join(stubs, 'ffmpeg'), '#!/bin/sh\nexec sleep infinity\n', { mode: 0o755 });
  const settings = {
    ...s3Settings(s3, bucket),
    SERVICE__INPUT_RESOLVERS__HTTP__IDLE_TIMEOUT_MS: '600000',
    PATH: `${stubs}:${process.env['PATH']}`,
  };
  service = await startService({ folder: serviceHome, settings });
});

after(async () => {
  await service?.stop();
  await s3?.close();
  await holding?.close();
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
      inputs: [{ type: 'remote_file_url', url: `${holding.base}/long.mp4` }],
      output: { type: 'local', name: 'film' },
    });
    await cancelWhen(jobId, () => isUnderWay(jobId));
    assert.deepEqual(filesIn(join(serviceHome, 'output', 'film')), []);
    assertNothingStaged();
  });

  test('leaves nothing of a film in a bucket, and no upload', async () => {
    const jobId = await service.submit('/v2/c2pa/video', {
      inputs: [{ type: 'remote_file_url', url: `${holding.base}/long.mp4` }],
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
    ffmpeg(home, ['-i', makeFilm(home)], `-map 0 -c copy ${join(folder, 'film.mkv')}`);
    const jobId = await service.submit('/v2/package', {
      inputs: [{ type: 'local_folder_path', path: folder }],
      output: { type: 'local', name: 'package' },
    });
    await cancelWhen(jobId, () => programs().some((pid) => commandOf(pid).includes('infinity')));
    await until(() => programs().length === 0);
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

/** The programs that packaging runs: they work in the scratch space, unlike the service and its workers. */
function programs(): number[] {
  const scratch = join(serviceHome, 'data', 'scratch');
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && folderOfProcess(name).startsWith(scratch))
    .map(Number);
}

function folderOfProcess(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return ''; // It ended in the meantime.
  }
}
