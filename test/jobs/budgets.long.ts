import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Config } from '#config/config.ts';
import { NO_PROGRESS } from '#jobs/job.ts';
import type { Jobs } from '#jobs/jobs.ts';
import type { InputPhase } from '#operations/operation.ts';
import { Launcher } from '#processes/launcher.ts';
import { probeProtections } from '#processes/protections.ts';
import { WorkerRun } from '#workers/worker-run.ts';
import { configFor, ended, keptLog, scripts, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { commandOf, descendantsOf, processText } from '../support/process-tree.ts';
import { isRunning } from '../support/processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const MIB_BYTES = 1024 ** 2;
const GIB_BYTES = 1024 ** 3;

/** Jobs whose workers have small budgets, one worker unless told otherwise. */
async function jobsWith(
  t: TestContext,
  budgets: Partial<Config['worker']['budgets']>,
  options: Parameters<typeof startedJobs>[1] = {},
): Promise<Jobs> {
  const config = configFor(temporaryFolder());
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
    const log = join(temporaryFolder(), 'log');
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

  test('of time for one phase fails', async (t) => {
    const jobs = await jobsWith(t, { phase_seconds_base: 1 });
    assert.deepEqual(await endsOf(jobs, ['sleep for-ever']), ['INPUT_OVER_BUDGET wall_time after started']);
  });

  test('of memory is killed before the memory of the host is used up', async (t) => {
    const jobs = await jobsWith(t, { memory_bytes: 256 * MIB_BYTES });
    assert.deepEqual(await endsOf(jobs, ['grow', 'progress 1']), [
      'INPUT_OVER_BUDGET memory after started',
      'succeeded',
    ]);
  });

  test('of bytes written is counted and stopped, wherever it writes to', async (t) => {
    const jobs = await jobsWith(t, { output_bytes_base: MIB_BYTES });
    assert.deepEqual(await endsOf(jobs, ['pour /dev/null']), ['INPUT_OVER_BUDGET output_size after started']);
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

  test('ends with every program that it started, and is told of in the log', async (t) => {
    const pidFile = join(temporaryFolder(), 'pid');
    const log = keptLog();
    const jobs = await jobsWith(t, { cpu_seconds_base: 1 }, { log });
    await endsOf(jobs, [`spawn ${pidFile}; loop`]);
    const pid = Number(await readFile(pidFile, 'utf8'));
    await until(() => !isRunning(pid));
    const line = log.lines.find(({ fields }) => 'budget' in fields && fields.budget === 'cpu_time');
    assert.equal(line?.level, 'warn');
  });
});

describe('the time that an input may spend in one phase', () => {
  const budgets = { ...configFor('/nowhere').worker.budgets, phase_seconds_base: 1, phase_seconds_per_gib: 60 };

  /** Returns what an input exceeds after steps: its phase, the GiB that it has opened, and the milliseconds that follow. */
  function excessAfter(...steps: readonly [phase: InputPhase, gib: number, elapsedMs: number][]) {
    const hooks = {
      signal: new AbortController().signal,
      progress: () => undefined,
      reserveOutputPath: async () => undefined,
      confirmLease: async () => undefined,
      awaitsSignature: () => undefined,
    };
    const run = new WorkerRun(hooks, budgets);
    const idle = { memoryBytes: 0, cpuMs: 0, readBytes: 0, writtenBytes: 0 };
    run.sampled(idle, 0);
    for (const [phase, gib, elapsedMs] of steps) {
      const size = { bytes: gib * GIB_BYTES, files: 1 };
      run.progressed({ type: 'progress', ...NO_PROGRESS, phase, size });
      run.sampled(idle, elapsedMs);
    }
    return run.excess;
  }

  test('is limited, and the phase is named', () => {
    assert.equal(excessAfter(['resolved', 0, 1_000]), null);
    const excess = { budget: 'wall_time', unit: 'seconds', limit: 1, used: 1.1, phase: 'resolved' };
    assert.deepEqual(excessAfter(['resolved', 0, 1_100]), excess);
  });

  test('begins anew with the next phase, and only then', () => {
    assert.equal(excessAfter(['resolved', 0, 1_000], ['staged', 0, 1_000]), null);
    assert.equal(excessAfter(['staged', 0, 1_000], ['staged', 0, 1_000])?.used, 2);
  });

  test('stays exceeded when the process, which is being killed, uses nothing any more or says more', () => {
    assert.equal(excessAfter(['resolved', 0, 1_100], ['staged', 0, 0])?.phase, 'resolved');
  });

  test('is longer for an input that has opened more', () => {
    assert.equal(excessAfter(['resolved', 1, 61_000]), null);
    assert.equal(excessAfter(['resolved', 1, 61_100])?.limit, 61);
  });
});

test('a worker in a sandbox is killed before the service where the host runs out of memory', async (t) => {
  const launcher = new Launcher({ protections: await probeProtections('require') });
  const folder = temporaryFolder();
  const jobs = await startedJobs(t, { launcher, config: configFor(folder) });
  await jobs.submit(scripts(['sleep for-ever']));
  const workers = () => descendantsOf(process.pid).filter((pid) => commandOf(pid).startsWith(process.execPath));
  await until(() => workers().some((pid) => processText(pid, 'oom_score_adj') === '500\n'));
  assert.equal(readFileSync('/proc/self/oom_score_adj', 'latin1'), '0\n');
});
