import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { MAX_SERVICE_EXITS } from '#jobs/store/finish-input.ts';
import { ended, keptLog, scripts, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { isRunning } from '../support/processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertTrueEnd, startTestService } from './start-test-service.ts';

describe('kill -9', () => {
  test('between two inputs repeats none that has ended', async (t) => {
    const folder = temporaryFolder();
    const data = join(folder, 'data');
    const log = join(folder, 'log');
    const first = await startTestService(t, data);
    const jobId = await first.submit(
      scripts([`append ${log}`, `append ${log}`, 'sleep for-ever', 'sleep for-ever', `append ${log}`]),
    );
    await until(async () => (await first.find(jobId))?.progress?.inputs_done === 2);
    await first.kill();
    const second = await startTestService(t, data);
    assert.equal((await second.find(jobId))?.progress?.inputs_done, 2);
    const starts = (await readFile(log, 'utf8'))
      .split('\n')
      .filter((line) => line.startsWith('0 ') || line.startsWith('1 '));
    assert.deepEqual(
      starts.map((line) => line.split(' ')[1]),
      ['1', '1'],
    );
  });

  test('ends the workers with the service', async (t) => {
    const folder = temporaryFolder();
    const log = join(folder, 'log');
    const service = await startTestService(t, join(folder, 'data'));
    await service.submit(scripts([`append ${log}; sleep for-ever`]));
    await until(() => existsSync(log));
    const worker = Number((await readFile(log, 'utf8')).split(' ')[2]);
    await service.kill();
    await until(() => !isRunning(worker));
  });

  test('by an input the moment that it starts, every time, ends with the failure of that input', async (t) => {
    const data = join(temporaryFolder(), 'data');
    const inputs = ['progress 1', 'kill-service'];
    let jobId = '';
    // Each start ends an input or counts against one, and none is counted against more often than this.
    for (let starts = 1; starts <= 1 + MAX_SERVICE_EXITS * inputs.length; starts += 1) {
      const service = await startTestService(t, data);
      if (starts === 1) jobId = await service.submit(scripts(inputs));
      const job = await service.ended(jobId).catch(() => null);
      if (job === null) {
        await service.gone;
        if (starts === 1) noteServiceExits(data, MAX_SERVICE_EXITS - 2);
        continue;
      }
      assert.equal(job.results[1]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
      for (const entry of job.results) assertTrueEnd(entry);
      t.diagnostic(`${starts} starts`);
      return;
    }
    assert.fail('it ended the service again and again');
  });
});

/** Notes exits of the service against all inputs: each would take a start of the service. */
function noteServiceExits(data: string, count: number): void {
  const store = new DatabaseSync(join(data, 'jobs.sqlite'));
  store.prepare('update inputs set service_ends = ?').run(count);
  store.close();
}

describe('workers that cannot start', () => {
  test('cost their inputs, not the service, where that lasts', async (t) => {
    process.env['SCRIPTED_START'] = 'fails';
    t.after(() => delete process.env['SCRIPTED_START']);
    const jobs = await startedJobs(t, { workerTimeouts: { restartDelaysMs: [] } });
    const job = await ended(jobs, (await jobs.submit(scripts(['progress 1']))).job_id);
    assert.equal(job.results[0]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
    delete process.env['SCRIPTED_START'];
    assert.equal((await ended(jobs, (await jobs.submit(scripts(['progress 1']))).job_id)).status, 'succeeded');
  });

  test('cost no input where that passes', async (t) => {
    process.env['SCRIPTED_START'] = 'fails';
    t.after(() => delete process.env['SCRIPTED_START']);
    const log = keptLog();
    const jobs = await startedJobs(t, {
      log,
      workerTimeouts: { restartDelaysMs: Array<number>(10_000).fill(1) },
    });
    const { job_id: jobId } = await jobs.submit(scripts(['progress 1']));
    await until(() => log.lines.length > 3);
    delete process.env['SCRIPTED_START'];
    assert.equal((await ended(jobs, jobId)).status, 'succeeded');
  });
});
