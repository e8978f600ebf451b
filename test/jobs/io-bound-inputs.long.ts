import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { ended, scripts, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The attempt and the process of each line that the `append` steps of a script wrote. */
async function linesOf(file: string): Promise<{ attempt: number; pid: number }[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [, attempt = Number.NaN, pid = Number.NaN] = line.split(' ').map(Number);
    return { attempt, pid };
  });
}

describe('an I/O-bound input', () => {
  test('has its worker begin the next one', async (t) => {
    const folder = temporaryFolder();
    const at = (name: string): string => join(folder, name);
    const jobs = await startedJobs(t, { maxRunningInputs: 1 });
    const inputs = [
      `append ${at('first')}; report-io-bound; wait-for ${at('begun')}`,
      `append ${at('second')}; write ${at('begun')}`,
    ];
    const job = await ended(jobs, (await jobs.submit(scripts(inputs))).job_id);
    assert.equal(job.status, 'succeeded');
    const [first, second] = [await linesOf(at('first')), await linesOf(at('second'))];
    assert.deepEqual(first, second);
    assert.equal(first.length, 1);
  });

  test('lets an extra worker exit when it has finished', async (t) => {
    const folder = temporaryFolder();
    const [gate, done] = [join(folder, 'gate'), join(folder, 'done')];
    const jobs = await startedJobs(t, { maxRunningInputs: 1 });
    const busy = await jobs.submit(scripts([`wait-for ${gate}; report-io-bound`]));
    await until(async () => (await jobs.readiness()).workers.running === 1);
    const extra = await jobs.submit(scripts([`report-io-bound; wait-for ${done}`]));
    await until(async () => (await jobs.readiness()).workers.processes === 2);
    for (const file of [gate, done]) await writeFile(file, '');
    for (const { job_id: jobId } of [busy, extra]) await ended(jobs, jobId);
    await until(async () => (await jobs.readiness()).workers.processes === 1);
  });

  test('is done again, and neither is blamed, where the process ends with another in it', async (t) => {
    const folder = temporaryFolder();
    const at = (name: string): string => join(folder, name);
    const jobs = await startedJobs(t, { maxRunningInputs: 1 });
    const inputs = [
      `append ${at('waiting')}; report-io-bound; wait-for ${at('done')}`,
      `append ${at('crashing')}; crash SIGKILL`,
    ];
    const { job_id: jobId } = await jobs.submit(scripts(inputs));
    // A third line is of a second attempt, so the process is gone that could have seen the file.
    const starts = async (name: string) => (await linesOf(at(name))).length;
    await until(async () => (await starts('waiting')) + (await starts('crashing')) > 2);
    await writeFile(at('done'), '');
    const job = await ended(jobs, jobId);
    assert.equal(job.results[0]?.status, 'succeeded');
    assert.equal(job.results[1]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
    const attempts = async (name: string) => (await linesOf(at(name))).map(({ attempt }) => attempt);
    assert.deepEqual(await attempts('waiting'), [1, 2]);
    assert.deepEqual(await attempts('crashing'), [1, 2, 3, 4], 'once beside the other, and three times alone');
  });

  test('is done again alone, so that what ends the process is found out', async (t) => {
    const folder = temporaryFolder();
    const at = (name: string): string => join(folder, name);
    const jobs = await startedJobs(t, { maxRunningInputs: 1 });
    const inputs = [
      `append ${at('crashing')}; report-io-bound; wait-for ${at('beside')}; crash SIGKILL`,
      `append ${at('innocent')}; write ${at('beside')}; wait-for ${at('done')}`,
    ];
    const { job_id: jobId } = await jobs.submit(scripts(inputs));
    await until(async () => (await linesOf(at('innocent'))).length > 1);
    await writeFile(at('done'), '');
    const job = await ended(jobs, jobId);
    assert.equal(job.results[0]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
    assert.equal(job.results[1]?.status, 'succeeded');
    assert.equal((await linesOf(at('crashing'))).length, 4);
    assert.equal((await linesOf(at('innocent'))).length, 2);
  });

  test('is blamed where it is alone in the process', async (t) => {
    const folder = temporaryFolder();
    const log = join(folder, 'log');
    const jobs = await startedJobs(t, { maxRunningInputs: 1 });
    const job = await ended(jobs, (await jobs.submit(scripts([`append ${log}; report-io-bound; exit 3`]))).job_id);
    assert.equal(job.results[0]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
    assert.equal((await linesOf(log)).length, 3);
  });

  test('is stopped by force without harm to the one beside it', async (t) => {
    const folder = temporaryFolder();
    const at = (name: string): string => join(folder, name);
    const jobs = await startedJobs(t, { maxRunningInputs: 1, workerTimeouts: { abortMs: 50 } });
    // Both of one caller, to whom no extra worker goes.
    const submit = (script: string) => jobs.submit(scripts([script], { caller: 'one' }));
    const stuck = await submit('report-io-bound; stubborn for-ever');
    const other = await submit(`append ${at('other')}; wait-for ${at('go')}`);
    await until(async () => (await linesOf(at('other'))).length > 0);
    await jobs.cancel(stuck.job_id);
    await until(async () => (await linesOf(at('other'))).length > 1);
    await writeFile(at('go'), '');
    assert.equal((await ended(jobs, stuck.job_id)).results[0]?.status, 'cancelled');
    assert.equal((await ended(jobs, other.job_id)).status, 'succeeded');
    assert.deepEqual(
      (await linesOf(at('other'))).map(({ attempt }) => attempt),
      [1, 2],
    );
  });

  test('lets a worn worker end before another takes its place', async (t) => {
    const folder = temporaryFolder();
    const at = (name: string): string => join(folder, name);
    const jobs = await startedJobs(t, { maxRunningInputs: 1 });
    const inputs = [
      `append ${at('log')}; report-io-bound; wait-for ${at('go')}`,
      `append ${at('log')}; taint`,
      `append ${at('log')}`,
    ];
    const { job_id: jobId } = await jobs.submit(scripts(inputs));
    await until(async () => (await jobs.find(jobId))?.progress?.inputs_done === 1);
    await writeFile(at('go'), '');
    assert.equal((await ended(jobs, jobId)).status, 'succeeded');
    const [first, second, third, ...again] = await linesOf(at('log'));
    assert.equal(first?.pid, second?.pid);
    assert.notEqual(second?.pid, third?.pid);
    assert.deepEqual(again, [], 'none was done again');
  });
});
