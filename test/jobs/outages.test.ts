import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { idOf } from '#jobs/dependencies.ts';
import type { Jobs } from '#jobs/jobs.ts';
import { Outages } from '#jobs/outages/outages.ts';
import type { Log } from '#telemetry/logger.ts';
import { errorsPage } from '../../scripts/errors-page.ts';
import { configFor, ended, keptLog, linesOf, NO_LOG, scripts, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const AWAY = new AppError('SIGNATURE_FAILED', { problem: 'it is away' });
const AMBIGUOUS = new AppError('OUTPUT_FAILED', { path: '/out', problem: 'x' });
const FULL = new AppError('OUTPUT_DISK_FULL', { path: '/out', neededBytes: 2, freeBytes: 1, reservedBytes: 0 });
const RESERVED = new AppError('OUTPUT_DISK_FULL', { path: '/out', neededBytes: 2, freeBytes: 3, reservedBytes: 2 });
const FAST = { firstMs: 1, maxMs: 1 };

test('errors of outages do not ask for what the service does by itself', () => {
  const lines = errorsPage()
    .split('\n')
    .filter((line) => line.includes('` ⏸'));
  assert.ok(lines.length > 5);
  for (const line of lines) assert.doesNotMatch(line, /submit|again later/i);
});

test('errors of a full disk, which are shown until it has space again, do not say how much was free', () => {
  for (const reason of ['OUTPUT_DISK_FULL', 'SCRATCH_FULL'] as const) {
    const { message } = new AppError(reason, { path: '/out', neededBytes: 2, freeBytes: 4_711, reservedBytes: 4_711 });
    assert.doesNotMatch(message, /4711/);
  }
});

/** Outages of dependencies, of which `away` says which are away. */
function outagesOf(away: ReadonlySet<string>, log: Log = NO_LOG) {
  const probed: string[] = [];
  let changes = 0;
  const outages = new Outages({
    probes: {
      problemOf: async (dependency) => {
        probed.push(idOf(dependency));
        return away.has(idOf(dependency)) ? 'it is away' : null;
      },
      minPauseMs: () => 0,
    },
    log,
    outageHours: 24,
    signers: () => null,
    changed: () => {
      changes += 1;
    },
    backoff: FAST,
  });
  return { outages, probed, changes: () => changes };
}

describe('an outage', () => {
  test('begins with the first input that meets it, and keeps from starting what needs the dependency', async () => {
    const { outages } = outagesOf(new Set(['signer']));
    assert.deepEqual(await outages.meet(AWAY, ['signer']), { dependency: 'signer', pauseMs: null });
    assert.deepEqual(outages.bounds([]).withoutDependencies, ['signer']);
    assert.equal(outages.bounds([]).count, Number.POSITIVE_INFINITY);
    outages.stop();
  });

  test('is one only where a probe fails too, if the request may be at fault', async () => {
    const { outages } = outagesOf(new Set());
    assert.equal(await outages.meet(AMBIGUOUS, ['output_folder']), null);
    const other = outagesOf(new Set(['output_folder']));
    assert.equal((await other.outages.meet(AMBIGUOUS, ['output_folder']))?.dependency, 'output_folder');
    other.outages.stop();
  });

  test('is logged with the name of the folder as it is configured', async () => {
    const [id, log] = [idOf({ kind: 'input_folder', name: '/media/in' }), keptLog()];
    const { outages } = outagesOf(new Set([id]), log);
    outages.hangs(id, 'it is away');
    assert.deepEqual(
      log.lines.map(({ fields }) => (fields as { dependency?: string }).dependency),
      ['input_folder:/media/in'],
    );
    outages.stop();
  });

  test('of a bucket is that of the side whose probe fails', async () => {
    const error = new AppError('S3_UNREACHABLE', { address: 's3://media/a', problem: 'x' });
    const { outages } = outagesOf(new Set(['output_bucket:media']));
    const needs = ['input_bucket:media', 'output_bucket:media', 'output_bucket:other', 'signer'];
    assert.equal((await outages.meet(error, needs))?.dependency, 'output_bucket:media');
    outages.stop();
  });

  test('does not begin where an input is too large for what is free, and others are not', async () => {
    const { outages } = outagesOf(new Set());
    assert.deepEqual(await outages.meet(FULL, ['output_folder']), { dependency: 'output_folder', pauseMs: 30_000 });
    assert.deepEqual(outages.list(), []);
  });

  test('begins where a bucket or folder hangs', async () => {
    for (const [id, reason] of [
      ['output_bucket:media', 'S3_UNREACHABLE'],
      ['output_folder', 'FOLDER_HANGS'],
    ] as const) {
      const { outages } = outagesOf(new Set([id]));
      assert.equal(outages.hangs(id, (await outages.problemOf(id)) ?? '').reason, reason);
      assert.deepEqual(outages.bounds([]).withoutDependencies, [id]);
      outages.stop();
    }
  });

  test('begins where one input after the other does not fit, although a probe does, and each waits alone', async () => {
    const { outages } = outagesOf(new Set());
    await outages.meet(FULL, ['output_folder']);
    assert.deepEqual(await outages.meet(FULL, ['output_folder']), { dependency: 'output_folder', pauseMs: 30_000 });
    assert.deepEqual(outages.bounds([]).withoutDependencies, ['output_folder']);
    await until(() => outages.bounds([]).count === 1);
    outages.passed(['output_folder']);
    await outages.meet(FULL, ['output_folder']);
    assert.deepEqual(outages.bounds([]).withoutDependencies, []);
  });

  test('does not begin where inputs do not fit beside what others have reserved: each waits as long as it has waited', async () => {
    const { outages, probed } = outagesOf(new Set());
    for (const [waitedMs, pauseMs] of [
      [0, 1_000],
      [8_000, 8_000],
      [3_600_000, 30_000],
    ] as const)
      assert.deepEqual(await outages.meet(RESERVED, ['output_folder'], waitedMs), {
        dependency: 'output_folder',
        pauseMs,
      });
    assert.deepEqual([outages.bounds([]).withoutDependencies, probed], [[], []]);
  });

  test('ends with one input that goes first, then twice as many with each that succeeds', async () => {
    const away = new Set(['signer']);
    const { outages, changes } = outagesOf(away);
    await outages.meet(AWAY, ['signer']);
    away.clear();
    await until(() => outages.bounds([]).count === 1);
    assert.equal(changes() > 0, true);
    assert.deepEqual(outages.bounds([['signer']]).withoutDependencies, ['signer']);
    outages.passed(['signer']);
    assert.equal(outages.bounds([]).count, 2);
    for (let passed = 0; passed < 3; passed += 1) outages.passed(['signer']);
    assert.deepEqual(outages.list(), []);
  });

  test('goes on where the probe succeeds and inputs meet it all the same', async () => {
    const { outages, probed } = outagesOf(new Set());
    await outages.meet(AWAY, ['signer']);
    await until(() => outages.bounds([]).count === 1);
    await outages.meet(AWAY, ['signer']);
    assert.deepEqual(outages.bounds([]).withoutDependencies, ['signer']);
    await until(() => outages.bounds([]).count === 1);
    assert.ok(probed.length >= 2);
    outages.stop();
  });
});

/** Jobs whose dependencies are away while a file is there. */
async function jobsWith(t: { after(tearDown: () => Promise<void>): void }, outageHours = 24) {
  const folder = temporaryFolder();
  const config = configFor(folder);
  const marker = join(folder, 'away');
  const log = keptLog();
  const started = join(folder, 'started');
  writeFileSync(marker, '');
  const jobs = await startedJobs(t, {
    config: { ...config, jobs: { ...config.jobs, outage_hours: outageHours } },
    log,
    probes: {
      // On a slow machine an input makes no progress for so long that its folders are tried too.
      problemOf: async ({ kind }) => (kind === 'signer' && existsSync(marker) ? 'it is away' : null),
      minPauseMs: () => 0,
    },
  });
  return { jobs, marker, log, started };
}

/** Resolves when so many inputs of a job wait. */
async function waits(jobs: Jobs, jobId: string, count = 1): Promise<void> {
  await until(async () => {
    const [waiting] = (await jobs.find(jobId))?.waiting_for ?? [];
    return (waiting?.inputs ?? 0) >= count;
  });
}

describe('inputs that meet an outage', () => {
  test('wait, go on by themselves when it is over, and none fails', async (t) => {
    const { jobs, marker, log, started } = await jobsWith(t);
    const inputs = Array.from({ length: 20 }, () => `append ${started}; sign-unless ${marker}`);
    const { job_id: jobId } = await jobs.submit(scripts(inputs));
    await waits(jobs, jobId, inputs.length);
    const { job_id: other } = await jobs.submit({ ...scripts(['progress 1']), operation: 'verify' });
    assert.equal((await ended(jobs, other)).status, 'succeeded');
    const [waiting] = (await jobs.find(jobId))?.waiting_for ?? [];
    assert.deepEqual(
      [waiting?.dependency, waiting?.inputs, waiting?.reason],
      ['signer:default', 20, 'SIGNATURE_FAILED'],
    );
    assert.deepEqual((await jobs.state()).inputsWaitingFor, { signer: 20 });
    assert.deepEqual(jobs.nodeState().away, ['signer']);
    rmSync(marker);
    assert.equal((await ended(jobs, jobId)).status, 'succeeded');
    const starts = await linesOf(started);
    assert.ok(starts.length <= 20 + 2, `${starts.length} starts`);
    assert.equal(log.lines.filter(({ level }) => level === 'warn').length, 1);
  });

  test('go on one after the other where those that go first fail for reasons of their own', async (t) => {
    const { jobs, marker } = await jobsWith(t);
    const inputs = Array.from({ length: 3 }, () => `sign-unless ${marker}; fail /media/x.mp4`);
    const { job_id: jobId } = await jobs.submit(scripts(inputs));
    await waits(jobs, jobId);
    rmSync(marker);
    const reasons = (await ended(jobs, jobId)).results.map(({ error_details: details }) => details?.reason);
    assert.deepEqual(reasons, ['SOURCE_NOT_FOUND', 'SOURCE_NOT_FOUND', 'SOURCE_NOT_FOUND']);
  });

  test('end at once when their job is cancelled', async (t) => {
    const { jobs, marker } = await jobsWith(t);
    const { job_id: jobId } = await jobs.submit(scripts([`sign-unless ${marker}`]));
    await waits(jobs, jobId);
    await jobs.cancel(jobId);
    assert.equal((await ended(jobs, jobId)).results[0]?.status, 'cancelled');
  });

  test('fail with the reason when they have waited for too long', async (t) => {
    const { jobs, marker } = await jobsWith(t, 0);
    const job = await ended(jobs, (await jobs.submit(scripts([`sign-unless ${marker}`]))).job_id);
    assert.equal(job.results[0]?.error_details?.reason, 'SIGNATURE_FAILED');
  });

  test('fail at once where only they cannot use the dependency', async (t) => {
    const { jobs, marker } = await jobsWith(t);
    const gone = `${marker}.other`;
    writeFileSync(gone, '');
    rmSync(marker);
    const job = await ended(jobs, (await jobs.submit(scripts([`write-unless ${gone}`]))).job_id);
    assert.equal(job.results[0]?.error_details?.reason, 'OUTPUT_FAILED');
  });

  test('that do not fit on the disk let others pass', async (t) => {
    const { jobs, marker } = await jobsWith(t);
    const large = `${marker}.large`;
    writeFileSync(large, '');
    rmSync(marker);
    const { job_id: jobId } = await jobs.submit(scripts([`fit-unless ${large}`]));
    await waits(jobs, jobId);
    assert.equal((await ended(jobs, (await jobs.submit(scripts(['progress 1']))).job_id)).status, 'succeeded');
    assert.equal((await jobs.find(jobId))?.waiting_for?.[0]?.dependency, 'output_folder');
    assert.deepEqual((await jobs.state()).inputsWaitingFor, { output_folder: 1 });
  });
});
