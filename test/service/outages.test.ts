import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { JobResultResponse } from '#contract/job.ts';
import type { Readiness } from '#contract/service.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { startFaultyProxy } from '../support/servers/faulty-s3-proxy.ts';
import { openTestS3 } from '../support/servers/open-test-s3.ts';
import { fillDisk, openSmallDisk } from '../support/small-disk.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { s3Settings } from './s3-settings.ts';

const SOUND = fileURLToPath(new URL('../../samples/four-notes.mp3', import.meta.url));
const INPUT = { type: 'local_file_path', path: SOUND };
/** In a sandbox, mounts of the host are seen where the system propagates them (mount_namespaces(7)), as systemd sets it up. */
const NO_SANDBOX = { SERVICE__WORKER__SANDBOX: 'off' };

const DISK_BYTES = 4 * 1024 * 1024;

async function started(t: TestContext, settings: Readonly<Record<string, string>>): Promise<RunningService> {
  const service = await startService({ folder: temporaryFolder(), settings });
  t.after(() => service.stop());
  return service;
}

/** A service that writes to a bucket through a proxy, which a test makes refuse. */
async function startedWithBucket(t: TestContext, more: Readonly<Record<string, string>> = {}) {
  const s3 = await openTestS3();
  const bucket = await s3.createBucket();
  const proxy = await startFaultyProxy(s3.place.endpoint);
  const settings = s3Settings({ place: { ...s3.place, endpoint: proxy.endpoint } }, bucket);
  const service = await started(t, { ...settings, ...more });
  // The service stops first: hooks run in the order in which they are added.
  t.after(() => proxy.close());
  t.after(() => s3.close());
  return { service, proxy, bucket };
}

async function readinessOf({ base }: RunningService): Promise<Readiness> {
  return (await (await fetch(`${base}/v2/health/ready`)).json()) as Readiness;
}

/** Asserts that a job waits for a dependency, and that the service says so. */
async function assertWaits(service: RunningService, jobId: string, dependency: string): Promise<void> {
  let job: JobResultResponse | undefined;
  await until(async () => {
    job = await service.lookUp(jobId);
    return job.waiting_for !== undefined || job.results.length > 0;
  });
  assert.deepEqual(
    job?.waiting_for?.map(({ dependency: named, inputs }) => [named, inputs]),
    [[dependency, job?.input_count]],
    JSON.stringify(job?.results),
  );
  await until(async () => (await readinessOf(service)).dependencies.some((away) => away.dependency === dependency));
}

async function assertGoesOn(service: RunningService, jobId: string): Promise<void> {
  const job = await service.waitFor(jobId);
  assert.equal(job.status, 'succeeded', JSON.stringify(job.results));
  await until(async () => (await readinessOf(service)).dependencies.length === 0);
}

describe('inputs wait, and go on by themselves,', () => {
  test('while the disk of outputs is full; inputs that need no output go on meanwhile', async (t) => {
    const disk = await openSmallDisk(DISK_BYTES);
    t.after(() => disk.cleanUp());
    const service = await started(t, { SERVICE__OUTPUT_SINKS__LOCAL__BASE_DIR: join(disk.path, 'out') });
    const filler = await fillDisk(disk.path);
    const inputs = Array.from({ length: 9 }, () => INPUT);
    const body = (input: object, index: number) => ({ inputs: [input], output: { type: 'local', name: `${index}` } });
    const jobs = await Promise.all(inputs.map((input, index) => service.submit('/v2/c2pa/audio', body(input, index))));
    for (const job of jobs) await assertWaits(service, job, 'output_folder');
    assert.equal((await service.runSync('/v2/sync/verify', { inputs: [INPUT] })).status, 'succeeded');
    truncateSync(filler, 0);
    for (const job of jobs) await assertGoesOn(service, job);
  });

  test('while a bucket refuses what it took before', async (t) => {
    const { service, proxy, bucket } = await startedWithBucket(t, { SERVICE__SERVER__SYNC_TIMEOUT_MS: '500' });
    proxy.fault = () => ({ status: 403, code: 'AccessDenied' });
    const body = { inputs: [INPUT], output: { type: 's3', bucket } };
    const job = await service.submit('/v2/c2pa/audio', body);
    await assertWaits(service, job, `output_bucket:${bucket}`);
    const [waiting] = (await service.lookUp(job)).waiting_for ?? [];
    assert.match(waiting?.message ?? '', new RegExp(`The endpoint is ${new URL(proxy.endpoint).host}\\.`));
    const late = await fetch(`${service.base}/v2/sync/c2pa/audio`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(late.status, 408);
    assert.match(await late.text(), /S3 refuses the service the right to write/);
    proxy.fault = () => null;
    await assertGoesOn(service, job);
    await assertGoesOn(service, late.headers.get('location')?.split('/').at(-1) ?? '');
  });

  test('while a folder of inputs is not mounted', async (t) => {
    const root = join(temporaryFolder(), 'mount');
    const file = join(root, 'sound.mp3');
    const mount = () => {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', root]);
      copyFileSync(SOUND, file);
    };
    mkdirSync(root);
    mount();
    t.after(() => execFileSync('umount', ['--lazy', root]));
    const service = await started(t, { SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: root, ...NO_SANDBOX });
    execFileSync('umount', ['--lazy', root]);
    const job = await service.submit('/v2/c2pa/audio', { inputs: [{ type: 'local_file_path', path: file }] });
    await assertWaits(service, job, `input_folder:${root}`);
    mount();
    await assertGoesOn(service, job);
  });
});

test('an input fails at once where its bucket works for others', async (t) => {
  const { service, proxy, bucket } = await startedWithBucket(t);
  proxy.fault = ({ url }) => (url?.includes('refused') ? { status: 403, code: 'AccessDenied' } : null);
  const output = { type: 's3', bucket, prefix: 'refused' };
  const job = await service.waitFor(await service.submit('/v2/c2pa/audio', { inputs: [INPUT], output }));
  assert.equal(job.results[0]?.error_details?.reason, 'S3_ACCESS_DENIED');
});
