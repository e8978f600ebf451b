import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
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
