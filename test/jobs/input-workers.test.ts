import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { InputAttempt, Submission } from '#jobs/job.ts';
import type { OperationName } from '#operations/operation.ts';
import { inertSigner } from '../support/jobs/inert-signer.ts';
import { TestIdentities, withIdentities } from '../support/jobs/test-identities.ts';
import { configFor, ended, keptLog, linesOf, scripts, shared, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { telemetryOf } from '../support/jobs/test-telemetry.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const log = keptLog();

/** For tests that leave nothing running. */
const sharedJobs = shared((scope) => startedJobs(scope, { log }));

describe('input workers', () => {
  test('an input that crashes its worker three times fails alone', async () => {
    const folder = temporaryFolder();
    const jobs = await sharedJobs();
    const crash = (how: string, name: string) => `append ${join(folder, name)}; ${how}`;
    const inputs = ['progress 1', crash('crash SIGSEGV', 'segv'), crash('exit 7', 'exit'), 'sleep 20', 'progress 1'];
    const job = await ended(jobs, (await jobs.submit(scripts(inputs))).job_id);
    assert.deepEqual(
      job.results.map(({ status }) => status),
      ['succeeded', 'failed', 'failed', 'succeeded', 'succeeded'],
    );
    assert.equal(job.results[1]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
    assert.match(String(job.results[1]?.error), /SIGSEGV/);
    assert.match(String(job.results[2]?.error), /exit code 7/);
    for (const name of ['segv', 'exit']) {
      assert.deepEqual(
        (await linesOf(join(folder, name))).map(({ attempt }) => attempt),
        [1, 2, 3],
      );
    }
  });

  test('a worker that sends what is none of its messages is killed, and its input fails', async () => {
    const jobs = await sharedJobs();
    const said = [
      '7',
      '"answer"',
      '{}',
      '{"answer":null}',
      '{"answer":{"type":"ready"}}',
      '{"answer":{"type":"failed"}}',
    ];
    for (const message of said) {
      const job = await ended(jobs, (await jobs.submit(scripts([`say ${message}`]))).job_id);
      assert.equal(job.results[0]?.error_details?.reason, 'INPUT_ENDED_PROCESS', message);
      assert.match(String(job.results[0]?.error), /because it sent a message that cannot be read/);
    }
  });

  test('a worker that runs an input when the identity is renewed finishes it, and is replaced then, as idle ones are', async (t) => {
    const folder = temporaryFolder();
    const { signer, renew } = inertSigner(new Date('2100-01-01'));
    const jobs = await startedJobs(t, { signer, maxRunningInputs: 2 });
    const file = (name: string) => join(folder, name);
    const both = [1, 2].map((name) => `append ${file('log')}; wait-for ${file(`go-${name}`)}; append ${file('log')}`);
    const { job_id: running } = await jobs.submit(scripts(both));
    await until(async () => (await linesOf(file('log'))).length === 2);
    await writeFile(file('go-1'), '');
    await until(async () => jobs.nodeState().inputsRunning === 1);
    renew(new Date('2101-01-01'));
    await writeFile(file('go-2'), '');
    assert.equal((await ended(jobs, running)).status, 'succeeded');
    const before = await linesOf(file('log'));
    const pidsOf = (lines: typeof before) => [...new Set(lines.map(({ pid }) => pid))];
    assert.equal(pidsOf(before).length, 2);
    await ended(jobs, (await jobs.submit(scripts([`append ${file('later')}`, `append ${file('later')}`]))).job_id);
    for (const pid of pidsOf(await linesOf(file('later')))) assert(!pidsOf(before).includes(pid));
  });

  test('a worker does inputs of one identity alone, so that a file of one department cannot sign for another', async (t) => {
    const folder = temporaryFolder();
    const signer = new TestIdentities('news', 'sport').signer;
    const config = withIdentities(configFor(folder), 'news', 'sport');
    const jobs = await startedJobs(t, { config, signer, maxRunningInputs: 1 });
    const pidOf = async (name: string, more: Partial<Submission>) => {
      const file = join(folder, name);
      await ended(jobs, (await jobs.submit(scripts([`append ${file}`], more))).job_id);
      return (await linesOf(file))[0]?.pid;
    };
    const ofIdentity = (name: string, identity: string) => pidOf(name, { identity });
    const [news, sport] = [await ofIdentity('one', 'news'), await ofIdentity('two', 'sport')];
    assert.deepEqual([await ofIdentity('three', 'news'), await ofIdentity('four', 'sport')], [news, sport]);
    const verifying = await pidOf('five', { operation: 'verify' });
    assert.equal(new Set([news, sport, verifying]).size, 3);
  });

  test('an operation that only a newer release has is left to the worker', async () => {
    const jobs = await sharedJobs();
    const later = scripts(['progress 1'], { operation: 'later' as OperationName });
    assert.equal((await ended(jobs, (await jobs.submit(later)).job_id)).status, 'succeeded');
  });

  test('an input that crashes its worker three times is logged and counted as failed once', async (t) => {
    const log = keptLog();
    const telemetry = telemetryOf(() => jobs);
    const jobs = await startedJobs(t, { log, telemetry });
    await ended(jobs, (await jobs.submit(scripts(['exit 7']))).job_id);
    const failures = log.lines.filter(({ message }) => message === 'input failed');
    assert.deepEqual(
      failures.map(({ fields }) => (fields as { reason?: string }).reason),
      ['INPUT_ENDED_PROCESS'],
    );
    const metrics = await telemetry.metrics.render();
    const runsThat = (end: string) => metrics.match(new RegExp(`input_runs_total\\{.*end="${end}"\\} (.*)`))?.[1];
    assert.deepEqual([runsThat('stopped'), runsThat('failed')], ['2', '1']);
    assert.match(metrics, /input_failures_total\{class="service",reason="INPUT_ENDED_PROCESS"\} 1$/m);
    assert.match(metrics, /worker_crashes_total 3$/m);
  });

  test('what a claim may have left behind is removed when it failed or its worker is gone, and all of it at the start', async (t) => {
    const cleared: unknown[] = [];
    const clearStagings = async (claim?: InputAttempt) => void cleared.push(claim?.attempt);
    const jobs = await startedJobs(t, { clearStagings });
    await ended(jobs, (await jobs.submit(scripts(['exit 1']))).job_id);
    await ended(jobs, (await jobs.submit(scripts(['progress 1', 'fail /x']))).job_id);
    assert.deepEqual(cleared, [undefined, 1, 2, 3, 1]);
  });

  test('a worker that gives no sign of progress is killed, and its input fails', async (t) => {
    const jobs = await startedJobs(t, { workerTimeouts: { silenceMs: 100 } });
    const job = await ended(jobs, (await jobs.submit(scripts(['sleep for-ever']))).job_id);
    assert.equal(job.results[0]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
  });

  test('workers stay for the next input, unless they are tainted', async (t) => {
    const folder = temporaryFolder();
    const log = join(folder, 'log');
    const jobs = await startedJobs(t, { maxRunningInputs: 1 });
    await ended(jobs, (await jobs.submit(scripts([`append ${log}`, `append ${log}; taint`, `append ${log}`]))).job_id);
    const [first, second, third] = (await linesOf(log)).map(({ pid }) => pid);
    assert.equal(first, second);
    assert.notEqual(second, third);
  });

  test('a worker in which an input could not be signed is replaced, so that the next attempt gets another one', async (t) => {
    const folder = temporaryFolder();
    const log = join(folder, 'log');
    const jobs = await startedJobs(t, { maxRunningInputs: 1 });
    await ended(jobs, (await jobs.submit(scripts([`append ${log}; break-signing`]))).job_id);
    const signed = await ended(jobs, (await jobs.submit(scripts([`append ${log}; sign`]))).job_id);
    assert.equal(signed.status, 'succeeded');
    const [breaking, failing, succeeding, ...more] = (await linesOf(log)).map(({ pid }) => pid);
    assert.equal(breaking, failing);
    assert.notEqual(failing, succeeding);
    assert.deepEqual(more, []);
  });

  test('a signal to the whole process group does not end them', async (t) => {
    const folder = temporaryFolder();
    const [log, signalled] = [join(folder, 'log'), join(folder, 'signalled')];
    const jobs = await startedJobs(t, { maxRunningInputs: 1 });
    const { job_id: jobId } = await jobs.submit(scripts([`append ${log}; wait-for ${signalled}; append ${log}`]));
    await until(async () => (await linesOf(log)).length > 0);
    const [line] = await linesOf(log);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(line?.pid ?? 0, signal);
    await writeFile(signalled, '');
    await ended(jobs, jobId);
    assert.deepEqual(
      (await linesOf(log)).map(({ attempt }) => attempt),
      [1, 1],
    );
  });
});
