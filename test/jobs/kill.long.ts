import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobResultResponse } from '#contract/job.ts';
import { HANG_MS, scripts, until } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertTrueEnd, startTestService, type TestService } from './start-test-service.ts';

const ROUNDS = 15;

/** Limit of the random delay before a kill; the first acknowledgements come after a few milliseconds. */
const MAX_ROUND_MS = 200;

test('kill -9 at random moments loses nothing that was acknowledged', async (t) => {
  const folder = temporaryFolder();
  const data = join(folder, 'data');
  const acknowledged: string[] = [];
  let submitted = 0;

  const submitUntilKilled = async (service: TestService): Promise<void> => {
    for (;;) {
      const outputs = Array.from(
        { length: 1 + (submitted % 4) },
        () => `write ${join(folder, `output-${submitted++}`)}; sleep 2`,
      );
      const jobId = await service.submit(scripts(outputs, { sync: submitted % 2 === 0 })).catch(() => null);
      if (jobId === null) return;
      acknowledged.push(jobId);
    }
  };

  for (let round = 0; round < ROUNDS; round += 1) {
    const service = await startTestService(t, data);
    const submitting = submitUntilKilled(service);
    // Busy machines acknowledge late. Most rounds have jobs to spare, and may be killed before their first acknowledgement.
    await until(() => acknowledged.length > round);
    await sleep(randomInt(1, MAX_ROUND_MS));
    await service.kill();
    await submitting;
  }
  const service = await startTestService(t, data);
  const jobs: JobResultResponse[] = [];
  // One after the other: each is waited for as long as anything may hang, however many the rounds left.
  for (const jobId of acknowledged) jobs.push(await service.ended(jobId));
  for (const job of jobs) {
    for (const entry of job.results) assertTrueEnd(entry);
  }
  const succeeded = jobs.flatMap((job) => job.results).filter((entry) => entry.status === 'succeeded');
  assert(succeeded.length > 0);
  // Inputs that were recorded but not acknowledged may still be written into the folder, which is removed next.
  await service.stop(HANG_MS);
  t.diagnostic(`${ROUNDS} kills: ${jobs.length} jobs acknowledged, 0 lost, ${succeeded.length} inputs succeeded`);
});

test('kill -9 of the service several times fails no input that was merely running', async (t) => {
  const folder = temporaryFolder();
  const data = join(folder, 'data');
  const [log, gate] = [join(folder, 'log'), join(folder, 'gate')];
  let jobId = '';
  for (let time = 1; time <= 5; time += 1) {
    const service = await startTestService(t, data);
    if (time === 1) jobId = await service.submit(scripts([`append ${log}; wait-for ${gate}`, 'progress 1']));
    const starts = async () => (await readFile(log, 'utf8').catch(() => '')).split('\n').length - 1;
    await until(async () => (await starts()) >= time);
    await until(async () => (await service.find(jobId))?.progress?.inputs_done === 1);
    await service.kill();
  }
  await writeFile(gate, '');
  const service = await startTestService(t, data);
  assert.equal((await service.ended(jobId)).status, 'succeeded');
});

test('kill -9 at any point of an input does it again from the start', async (t) => {
  const folder = temporaryFolder();
  const data = join(folder, 'data');
  const steps = ['append LOG', 'claim /out/x', 'progress 5', 'write OUTPUT'];
  // Each start finishes what the kill before it left, and takes the input that kills it next.
  let service = await startTestService(t, data);
  for (let point = 0; point <= steps.length; point += 1) {
    const [log, output, marker] = ['log', 'output', 'marker'].map((name) => join(folder, `${name}-${point}`));
    const script = steps
      .toSpliced(point, 0, `kill-service-once ${marker}`)
      .map((step) => step.replace('LOG', log ?? '').replace('OUTPUT', output ?? ''));
    const jobId = await service.submit(scripts([script.join('; ')]));
    await until(() => existsSync(marker ?? ''));
    await service.gone;
    service = await startTestService(t, data);
    const job = await service.ended(jobId);
    assert.equal(job.status, 'succeeded');
    assert(existsSync(output ?? ''));
    assert.match(await readFile(log ?? '', 'utf8'), /^0 2 \d+\n$/m);
  }
});
