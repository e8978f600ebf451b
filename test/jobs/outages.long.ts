import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { configFor, ended, linesOf, scripts, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('an input that makes no progress because a folder hangs is stopped, and waits for the folder', async (t) => {
  const folder = temporaryFolder();
  const [hanging, started, gate] = [join(folder, 'hanging'), join(folder, 'started'), join(folder, 'gate')];
  const jobs = await startedJobs(t, {
    config: configFor(folder),
    probes: { problemOf: async () => (existsSync(hanging) ? 'it does not answer' : null), minPauseMs: () => 0 },
  });
  // It waits for a file, as for a file system; one that waits although its folders answer is left alone.
  const script = `append ${started}; wait-for ${gate}`;
  const { job_id: jobId } = await jobs.submit(scripts([script]));
  await until(async () => (await linesOf(started)).length === 1);
  writeFileSync(hanging, '');
  await until(async () => (await jobs.find(jobId))?.waiting_for !== undefined);
  const [waiting] = (await jobs.find(jobId))?.waiting_for ?? [];
  assert.deepEqual([waiting?.dependency, waiting?.reason], ['output_folder', 'FOLDER_HANGS']);
  writeFileSync(gate, '');
  rmSync(hanging);
  assert.equal((await ended(jobs, jobId)).status, 'succeeded');
  assert.deepEqual(
    (await linesOf(started)).map(({ attempt }) => attempt),
    [1, 2],
  );
});

test('inputs of a folder that does not answer leave their slots to others before that is certain', async (t) => {
  const folder = temporaryFolder();
  const [before, started, gate] = [join(folder, 'before'), join(folder, 'started'), join(folder, 'gate')];
  const { promise: answer, resolve } = Promise.withResolvers<null>();
  const jobs = await startedJobs(t, {
    config: configFor(folder),
    probes: { problemOf: () => answer, minPauseMs: () => 0 },
  });
  const { job_id: held } = await jobs.submit(
    scripts([before, before].map((file) => `append ${file}; wait-for ${gate}`)),
  );
  await until(async () => (await linesOf(before)).length === 2);
  const others = [started, started].map((file) => `append ${file}; wait-for ${gate}`);
  const { job_id: other } = await jobs.submit({ ...scripts(others), operation: 'verify' });
  await until(async () => (await linesOf(started)).length === 2);
  assert.equal((await jobs.find(held))?.waiting_for, undefined);
  resolve(null);
  writeFileSync(gate, '');
  assert.deepEqual([(await ended(jobs, held)).status, (await ended(jobs, other)).status], ['succeeded', 'succeeded']);
});
