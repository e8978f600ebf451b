import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { JobResultResponse } from '#contract/job.ts';
import { AppError } from '#errors/app-error.ts';
import { Jobs } from '#jobs/jobs.ts';
import {
  configFor,
  ended,
  HANG_MS,
  keptLog,
  linesOf,
  NO_LOG,
  resultsOf,
  SCRIPTED_WORKER,
  scripts,
  shared,
  startedJobs,
  until,
} from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const NEVER = new AbortController().signal;

const log = keptLog();

/** For tests that leave nothing running. */
const sharedJobs = shared((scope) => startedJobs(scope, { log }));

/** The lines of the log that say that inputs of a job failed. */
function failuresOf({ job_id: jobId }: JobResultResponse) {
  return log.lines.filter(
    ({ fields, message }) => message === 'input failed' && 'job_id' in fields && fields.job_id === jobId,
  );
}

describe('jobs', () => {
  test('a job runs to its end and tells what became of each input', async () => {
    const jobs = await sharedJobs();
    const { job_id: jobId, status } = await jobs.submit(scripts(['progress 10', 'fail /nowhere', 'progress 5']));
    assert.equal(status, 'queued');
    const job = await ended(jobs, jobId);
    assert.equal(job.status, 'failed');
    const first = { input_index: 0, input_name: 'progress 10', status: 'succeeded', output_path: '/out/0' };
    assert.deepEqual(job.results[0], first);
    assert.equal(job.results[1]?.error_code, 'PROCESSING_FAILED');
    assert.deepEqual(job.results[1]?.error_details, { reason: 'SOURCE_NOT_FOUND', path: '/nowhere' });
    assert.equal(job.results[2]?.status, 'succeeded');
    assert.equal(job.progress, undefined);
    assert.deepEqual(resultsOf(await jobs.find(jobId)), job.results);
  });

  test('a bug becomes INTERNAL_ERROR without internals, and its stack goes to the log', async () => {
    const jobs = await sharedJobs();
    const job = await ended(jobs, (await jobs.submit(scripts(['bug the inner workings', 'progress 1']))).job_id);
    assert.equal(job.results[0]?.error_code, 'INTERNAL_ERROR');
    assert(!JSON.stringify({ ...job.results[0], input_name: '' }).includes('inner workings'));
    assert.equal(job.results[1]?.status, 'succeeded');
    const line = log.lines.find(({ fields }) => 'stack' in fields);
    assert.deepEqual({ ...line?.fields, stack: '' }, { job_id: job.job_id, input_index: 0, stack: '' });
    assert.match(JSON.stringify(line?.fields), /TypeError: the inner workings/);
  });

  test('the log warns of what the operator has to mend, and not of what the request got wrong', async () => {
    const jobs = await sharedJobs();
    const job = await ended(jobs, (await jobs.submit(scripts(['fail-read-back x', 'fail /nowhere']))).job_id);
    assert.equal(job.status, 'failed');
    const failures = failuresOf(job);
    const levels = failures.map(({ level, fields }) => [(fields as { reason: string }).reason, level]);
    assert.deepEqual(Object.fromEntries(levels), { READ_BACK_FAILED: 'warn', SOURCE_NOT_FOUND: 'info' });
  });

  test('the log line of a failed input has its name and the message of the error', async () => {
    const jobs = await sharedJobs();
    const job = await ended(jobs, (await jobs.submit(scripts(['fail /nowhere']))).job_id);
    const [failure] = failuresOf(job);
    assert(failure !== undefined);
    const { input, error } = failure.fields as { input: string; error: string };
    assert.deepEqual([input, error], ['nowhere', job.results[0]?.error]);
  });

  test('progress counts the bytes of running inputs', async () => {
    const jobs = await sharedJobs();
    const { job_id: jobId } = await jobs.submit(scripts(['progress 70', 'progress 30; sleep for-ever']));
    await until(async () => {
      const { inputs_done: done, bytes_done: bytes } = (await jobs.find(jobId))?.progress ?? {};
      return done === 1 && bytes === 100;
    });
    const job = await jobs.find(jobId);
    assert.equal(job?.status, 'running');
    assert.deepEqual(resultsOf(job), []);
    const progress = { inputs_done: 1, inputs_total: 2, bytes_done: 100, bytes_total: 100, fraction: 1 };
    assert.deepEqual(job?.progress, progress);
    assert.deepEqual((await jobs.list({ limit: 1 })).jobs[0]?.progress, progress, 'the list shows the same');
    await jobs.cancel(jobId);
  });

  test('progress counts inputs that are not opened yet', async (t) => {
    const jobs = await startedJobs(t, { maxRunningInputs: 1 });
    const inputs = ['progress 100', 'progress 25 of 100; sleep for-ever', ...Array<string>(98).fill('progress 1')];
    const { job_id: jobId } = await jobs.submit(scripts(inputs));
    await until(async () => (await jobs.find(jobId))?.progress?.bytes_done === 125);
    const { fraction, bytes_total: bytesTotal } = (await jobs.find(jobId))?.progress ?? {};
    assert.deepEqual([fraction, bytesTotal], [0.0125, 200]);
  });

  test('inputs of a job run side by side', async () => {
    const folder = temporaryFolder();
    const [log, met] = [join(folder, 'log'), join(folder, 'met')];
    const jobs = await sharedJobs();
    const meet = `append ${log}; wait-for ${met}`;
    const { job_id: jobId } = await jobs.submit(scripts([meet, meet]));
    await until(async () => (await linesOf(log)).length === 2);
    await writeFile(met, '');
    await ended(jobs, jobId);
    assert.equal(new Set((await linesOf(log)).map(({ pid }) => pid)).size, 2);
  });

  test('a one-file job ends while a large batch is under way', async (t) => {
    const [log, gate] = [join(temporaryFolder(), 'log'), join(temporaryFolder(), 'gate')];
    const jobs = await startedJobs(t);
    // All of one caller, to whom no extra worker goes. The first two inputs hold both workers, and write no line.
    const submit = (inputs: readonly string[], sync = false) => jobs.submit(scripts(inputs, { caller: 'one', sync }));
    await submit([...Array(2).fill(`wait-for ${gate}`), ...Array(998).fill(`append ${log}`)]);
    await until(async () => (await jobs.readiness()).workers.running === 2);
    const singles = [await submit([`append ${log}`]), await submit([`append ${log}`], true)];
    await writeFile(gate, '');
    for (const { job_id: jobId } of singles) await ended(jobs, jobId);
    assert((await linesOf(log)).findLastIndex(({ input }) => input === 0) < 500, 'inputs of the batch went first');
  });

  test('a full queue refuses what does not fit and takes what does', async (t) => {
    const config = configFor(temporaryFolder(), { queue_capacity: 3 });
    const jobs = await startedJobs(t, { config });
    // All of one caller, to whom no extra worker goes.
    const submit = (count: number) =>
      jobs.submit(scripts(Array<string>(count).fill('sleep for-ever'), { caller: 'one' }));
    await Promise.all([submit(1), submit(1)]);
    await until(() =>
      submit(3).then(
        () => true,
        () => false,
      ),
    );
    const refusal = await jobs.submit(scripts(['progress 1'])).catch((error: unknown) => error);
    assert(refusal instanceof AppError);
    assert.equal(refusal.reason, 'QUEUE_FULL');
    assert.equal(refusal.code, 'SERVICE_OVERLOADED');
    assert(refusal.isTransient);
    assert.equal(await jobs.healthy(), true);
    const { ready, queue } = await jobs.readiness();
    assert.deepEqual([ready, queue.waiting], [false, 3]);
  });

  test('a job larger than the queue is refused for good, for waiting would not help', async (t) => {
    const config = configFor(temporaryFolder(), { queue_capacity: 1 });
    const jobs = await startedJobs(t, { config });
    const refusal = await jobs.submit(scripts(['progress 1', 'progress 1'])).catch((error: unknown) => error);
    assert(refusal instanceof AppError);
    assert.equal(refusal.reason, 'JOB_EXCEEDS_QUEUE');
    assert(!refusal.isTransient);
  });

  test('an input that starts, waits again and starts leaves the queue of its caller empty', async (t) => {
    const jobs = await startedJobs(t);
    const inputs = [`fail-times 1 ${join(temporaryFolder(), 'passes')}`];
    await ended(jobs, (await jobs.submit(scripts(inputs, { caller: 'one' }))).job_id);
    assert.equal((await jobs.readiness()).queue.waiting, 0);
  });

  test('destinations are granted to one input of a job each', async () => {
    const jobs = await sharedJobs();
    const job = await ended(
      jobs,
      (await jobs.submit(scripts(['claim /out/x', 'claim /out/y', 'claim /out/x']))).job_id,
    );
    const failed = job.results.filter((entry) => entry.status === 'failed');
    assert.deepEqual(
      failed.map((entry) => entry.error_details?.reason),
      ['OUTPUT_TAKEN'],
    );
    const other = await ended(jobs, (await jobs.submit(scripts(['claim /out/x']))).job_id);
    assert.equal(other.status, 'succeeded');
  });
});

describe('failures that may pass', () => {
  test('are tried again after a while, and others are not', async (t) => {
    const folder = temporaryFolder();
    const [passes, log] = [join(folder, 'passes'), join(folder, 'log')];
    const jobs = await startedJobs(t);
    const inputs = [`fail-times 2 ${passes}`, `append ${log}; fail /nowhere`];
    const job = await ended(jobs, (await jobs.submit(scripts(inputs))).job_id);
    assert.deepEqual(
      job.results.map(({ status }) => status),
      ['succeeded', 'failed'],
    );
    assert.equal(await readFile(passes, 'utf8'), 'xxx');
    assert.equal((await linesOf(log)).length, 1);
  });

  test('do not keep the service from stopping, nor a job from being cancelled', async (t) => {
    const folder = temporaryFolder();
    const config = configFor(temporaryFolder());
    const passes = join(folder, 'passes');
    const jobs = await startedJobs(t, { config });
    const { job_id: jobId } = await jobs.submit(scripts([`fail-times 100 ${passes}`]));
    await until(async () => (await readFile(passes, 'utf8').catch(() => '')) !== '');
    await jobs.stop(HANG_MS);
    const again = await startedJobs(t, { config });
    await until(async () => (await readFile(passes, 'utf8')).length >= 2);
    await again.cancel(jobId);
    assert.equal((await ended(again, jobId)).results[0]?.status, 'cancelled');
  });
});

describe('waiting for a job', () => {
  test('ends when the job does, not at the next poll', async (t) => {
    const config = configFor(temporaryFolder());
    const slow = { ...config, server: { ...config.server, sync_poll_interval_ms: 3_600_000 } };
    const jobs = await startedJobs(t, { config: slow });
    for (const script of ['progress 1', 'sleep 50']) {
      const { job_id: jobId } = await jobs.submit(scripts([script], { sync: true }));
      assert.equal((await jobs.whenFinished(jobId, HANG_MS, NEVER))?.status, 'succeeded');
    }
  });

  test('ends at once for a job that has ended, and with null for one that does not exist', async () => {
    const jobs = await sharedJobs();
    const { job_id: jobId } = await jobs.submit(scripts(['progress 1']));
    await ended(jobs, jobId);
    assert.equal((await jobs.whenFinished(jobId, 3_600_000, NEVER))?.job_id, jobId);
    assert.equal(await jobs.whenFinished('unknown', 3_600_000, NEVER), null);
  });

  test('ends with null when the time is over, and rejects when it is aborted', async () => {
    const jobs = await sharedJobs();
    const { job_id: jobId } = await jobs.submit(scripts(['sleep for-ever']));
    assert.equal(await jobs.whenFinished(jobId, 20, NEVER), null);
    const gone = new AbortController();
    const waiting = jobs.whenFinished(jobId, 3_600_000, gone.signal);
    gone.abort(new Error('the client is gone'));
    await assert.rejects(waiting, { message: 'the client is gone' });
    await jobs.cancel(jobId);
  });
});

describe('stopping', () => {
  test('lets inputs end within the grace and takes nothing more', async (t) => {
    const config = configFor(temporaryFolder());
    const folder = temporaryFolder();
    const [log, gate] = [join(folder, 'log'), join(folder, 'gate')];
    const jobs = await startedJobs(t, { config });
    const { job_id: jobId } = await jobs.submit(scripts(Array<string>(4).fill(`append ${log}; wait-for ${gate}`)));
    await until(async () => (await linesOf(log)).length === 2);
    const stopping = jobs.stop(HANG_MS);
    assert.equal(await jobs.healthy(), false);
    await assert.rejects(jobs.submit(scripts(['progress 1'])), { reason: 'SERVICE_STOPPING' });
    await writeFile(gate, '');
    await stopping;
    assert.equal((await linesOf(log)).length, 2);
    const again = await startedJobs(t, { config });
    assert.equal((await ended(again, jobId)).status, 'succeeded');
    assert.equal((await linesOf(log)).length, 4);
  });

  test('queues again what does not end within the grace, however often, without calling it a process end', async (t) => {
    const config = configFor(temporaryFolder());
    const folder = temporaryFolder();
    const log = join(folder, 'log');
    let jobId = '';
    // More often than a process may end; `stubborn` does not listen to the abort and is killed.
    for (const [round, wait] of ['sleep', 'stubborn', 'block', 'sleep', 'stubborn'].entries()) {
      const jobs = await startedJobs(t, { config, workerTimeouts: { abortMs: 50 } });
      if (round === 0) jobId = (await jobs.submit(scripts([`append ${log}; ${wait} for-ever`, 'progress 1']))).job_id;
      await until(async () => (await linesOf(log)).length > round);
      await jobs.stop(1);
    }
    const jobs = await startedJobs(t, { config });
    const job = await jobs.find(jobId);
    assert.equal(job?.progress?.inputs_total, 2);
    assert.equal(job?.status, 'running');
  });

  test('stops also what has not begun yet, at once', async (t) => {
    const config = configFor(temporaryFolder());
    const jobs = new Jobs({ config, workerEntry: SCRIPTED_WORKER, log: NO_LOG, maxRunningInputs: 2 });
    await jobs.start();
    const { job_id: jobId } = await jobs.submit(scripts(Array.from({ length: 50 }, () => 'progress 1')));
    await jobs.stop(0);
    const again = await startedJobs(t, { config });
    assert.equal((await ended(again, jobId)).status, 'succeeded');
  });
});

describe('health', () => {
  test('tells whether the store can be reached', async (t) => {
    const jobs = await startedJobs(t);
    assert.equal(await jobs.healthy(), true);
    await jobs.stop(0);
    assert.equal(await jobs.healthy(), false);
  });
});
