import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ended, HANG_MS, scripts, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROUNDS = 40;
const INPUTS = 40;

test('an input that is told to be cancelled delivers nothing, whenever the cancel comes', async (t) => {
  const folder = temporaryFolder();
  // None is killed for being slow to stop: it may have delivered, and not told yet.
  const jobs = await startedJobs(t, { workerTimeouts: { abortMs: HANG_MS } });
  for (let round = 0; round < ROUNDS; round += 1) {
    const log = join(folder, `delivered-${round}`);
    const delivered = async () => (await readFile(log, 'utf8').catch(() => '')).split('\n').filter(Boolean);
    const { job_id: jobId } = await jobs.submit(scripts(Array(INPUTS).fill(`deliver ${log}`)));
    await until(async () => (await delivered()).length > round % 8);
    await jobs.cancel(jobId);
    const { results } = await ended(jobs, jobId);
    const succeeded = results.filter(({ status }) => status === 'succeeded').map(({ input_index: index }) => index);
    const told = (await delivered()).map((line) => Number(line.split(' ')[0]));
    assert.deepEqual(
      told.sort((a, b) => a - b),
      succeeded,
      `round ${round}`,
    );
  }
});
