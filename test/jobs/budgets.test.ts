import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Config } from '#config/config.ts';
import type { Jobs } from '#jobs/jobs.ts';
import { Launcher } from '#processes/launcher.ts';
import { probeProtections } from '#processes/protections.ts';
import { configFor, ended, keptLog, scripts, startedJobs, temporaryFolder, until } from '../support/jobs/test-jobs.ts';
import { childrenOf, commandOf } from '../support/process-tree.ts';
import { isRunning } from '../support/processes.ts';

const MIB_BYTES = 1024 ** 2;

/** Jobs whose workers have small budgets, one worker unless told otherwise. */
async function jobsWith(
  t: TestContext,
  budgets: Partial<Config['worker']['budgets']>,
  options: Parameters<typeof startedJobs>[1] = {},
): Promise<Jobs> {
  const config = configFor(await temporaryFolder(t));
  const worker = { ...config.worker, budgets: { ...config.worker.budgets, ...budgets } };
  return startedJobs(t, { maxRunningInputs: 1, ...options, config: { ...config, worker } });
}

/** Returns the results of a job's inputs: `succeeded`, or the reason and the budget. */
async function endsOf(jobs: Jobs, inputs: readonly string[]): Promise<string[]> {
  const { results } = await ended(jobs, (await jobs.submit(scripts(inputs))).job_id);
  return results.map(({ status, error_details: details }) =>
    details === undefined ? status : `${details.reason} ${details['budget']} after ${details['phase']}`,
  );
}

async function attemptsIn(file: string): Promise<number[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => Number(line.split(' ')[1]));
}

describe('an input that exceeds its budget', () => {
  test('of processor time fails at once, in an endless loop that answers nothing', async (t) => {
    const log = join(await temporaryFolder(t), 'log');
    const jobs = await jobsWith(t, { cpu_seconds_base: 1 });
    const ends = await endsOf(jobs, [`append ${log}; sleep 200; reached resolved; loop`, 'progress 1']);
    assert.deepEqual(ends, ['INPUT_OVER_BUDGET cpu_time after resolved', 'succeeded']);
    assert.deepEqual(await attemptsIn(log), [1]);
  });

  test('of processor time does not get more of it for a size that is only claimed', async (t) => {
    const jobs = await jobsWith(t, { cpu_seconds_base: 1 });
    assert.deepEqual(await endsOf(jobs, [`opened ${1024 ** 4}; sleep 300; loop`]), [
      'INPUT_OVER_BUDGET cpu_time after started',
    ]);
  });

  test('of processor time is charged for the programs that it started', async (t) => {
    const jobs = await jobsWith(t, { cpu_seconds_base: 1 });
    assert.deepEqual(await endsOf(jobs, ['loop-in-program']), ['INPUT_OVER_BUDGET cpu_time after started']);
  });

  test('is one of its size: what was opened raises the limit', async (t) => {
    const jobs = await jobsWith(t, { phase_seconds_base: 1, phase_seconds_per_gib: 60 });
    const ends = await endsOf(jobs, [`opened ${1024 * MIB_BYTES}; sleep 2500`, 'opened 1; sleep 60000']);
    assert.deepEqual(ends, ['succeeded', 'INPUT_OVER_BUDGET wall_time after started']);
  });

  test('of time for one phase fails, and the phase is named', async (t) => {
    const jobs = await jobsWith(t, { phase_seconds_base: 3 });
    const ends = await endsOf(jobs, ['reached resolved; sleep 60000', 'sleep 2000; reached staged; sleep 2000']);
    assert.deepEqual(ends, ['INPUT_OVER_BUDGET wall_time after resolved', 'succeeded']);
  });

  test('of memory is killed before the memory of the host is used up', async (t) => {
    const jobs = await jobsWith(t, { memory_bytes: 256 * MIB_BYTES });
    assert.deepEqual(await endsOf(jobs, ['grow', 'progress 1']), [
      'INPUT_OVER_BUDGET memory after started',
      'succeeded',
    ]);
  });

  test('of bytes written fails before the disk is full', async (t) => {
    const file = join(await temporaryFolder(t), 'poured');
    const jobs = await jobsWith(t, { output_bytes_base: MIB_BYTES });
    assert.deepEqual(await endsOf(jobs, [`pour ${file}`]), ['INPUT_OVER_BUDGET output_size after started']);
  });

  test('of open files fails with the limit, which the kernel enforces', async (t) => {
    const launcher = new Launcher({ protections: await probeProtections('off') });
    const jobs = await jobsWith(t, { open_files: 300 }, { launcher });
    const { results } = await ended(jobs, (await jobs.submit(scripts(['open-too-many', 'progress 1']))).job_id);
    const details = results[0]?.error_details;
    assert.deepEqual(
      [details?.reason, details?.['budget'], details?.['limit']],
      ['INPUT_OVER_BUDGET', 'open_files', 300],
    );
    assert.equal(results[1]?.status, 'succeeded');
  });

  test('of memory in one step, before it is sampled, is stopped by the kernel', async (t) => {
    const launcher = new Launcher({ protections: await probeProtections('off') });
    const jobs = await jobsWith(t, { memory_bytes: 256 * MIB_BYTES }, { launcher });
    const ends = await endsOf(jobs, ['grow-at-once', 'progress 1']);
    assert.deepEqual(ends, ['INPUT_OVER_BUDGET memory after started', 'succeeded']);
  });

  test('is found out among several in one worker: the others succeed, it fails once alone', async (t) => {
    const folder = await temporaryFolder(t);
    const at = (name: string): string => join(folder, name);
    const jobs = await jobsWith(t, { cpu_seconds_base: 1 });
    const ends = await endsOf(jobs, [
      `append ${at('first')}; report-io-bound; sleep 600`,
      `append ${at('culprit')}; report-io-bound; sleep 200; loop`,
      `append ${at('last')}; sleep 600`,
    ]);
    assert.deepEqual(ends, ['succeeded', 'INPUT_OVER_BUDGET cpu_time after started', 'succeeded']);
    assert.deepEqual(await attemptsIn(at('culprit')), [1, 2], 'once beside the others, and once alone');
    assert.deepEqual(await attemptsIn(at('first')), [1, 2]);
    assert.deepEqual(await attemptsIn(at('last')), [1, 2]);
  });

  test('ends with every program that it started, and is told of in the log', async (t) => {
    const pidFile = join(await temporaryFolder(t), 'pid');
    const log = keptLog();
    const jobs = await jobsWith(t, { cpu_seconds_base: 1 }, { log });
    await endsOf(jobs, [`spawn ${pidFile}; loop`]);
    const pid = Number(await readFile(pidFile, 'utf8'));
    await until(() => !isRunning(pid));
    const line = log.lines.find(({ fields }) => 'budget' in fields && fields.budget === 'cpu_time');
    assert.equal(line?.level, 'warn');
  });
});

test('a worker in a sandbox is killed before the service where the host runs out of memory', async (t) => {
  const launcher = new Launcher({ protections: await probeProtections('require') });
  const folder = await temporaryFolder(t);
  const jobs = await startedJobs(t, { launcher, config: configFor(folder) });
  await jobs.submit(scripts(['sleep 60000']));
  const workers = () => descendantsOf(process.pid).filter((pid) => commandOf(pid).startsWith(process.execPath));
  await until(() => workers().some((pid) => readFileSync(`/proc/${pid}/oom_score_adj`, 'latin1') === '500\n'));
  assert.equal(readFileSync('/proc/self/oom_score_adj', 'latin1'), '0\n');
});

function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}
