import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { MAX_SERVICE_ENDS } from '#jobs/job.ts';
import { INPUT_PHASES } from '#operations/operation.ts';
import { startService } from '../../scripts/running-service.ts';
import { assertValid } from '../formats/judges.ts';

const KILLING_SERVICE = fileURLToPath(new URL('./killing-service.ts', import.meta.url));

describe('A service that is killed while an input is', () => {
  let folder: string;
  let sample: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'attestream-kill-points-'));
    sample = join(folder, 'sample.mp4');
    const picture = ['-f', 'lavfi', '-i', 'testsrc=duration=2:size=320x240'];
    execFileSync('ffmpeg', ['-v', 'error', ...picture, '-c:v', 'libx264', sample]);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  // A file that is signed is not packaged before.
  for (const phase of INPUT_PHASES.filter((each) => each !== 'packaged')) {
    test(`${phase} finishes it after the next start, and leaves nothing staged`, async () => {
      const home = join(folder, phase);
      const body = { inputs: [{ type: 'local_file_path', path: sample }] };
      const killed = await startService({ folder: home, program: KILLING_SERVICE, settings: { KILL_AT: phase } });
      const jobId = await killed.submit('/v2/c2pa/video', body);
      await killed.ended;

      await using service = await startService({ folder: home });
      const job = await service.waitFor(jobId);

      assert.equal(job.status, 'succeeded');
      const output = join(home, 'output', 'sample_c2pa.mp4');
      assert.equal(job.results[0]?.output_path, output);
      await assertValid(readFileSync(output), 'video/mp4');
      assert.deepEqual(readdirSync(join(home, 'output')), ['sample_c2pa.mp4']);
      assert.deepEqual(readdirSync(join(home, 'data', 'staging')), []);
    });
  }

  test('again and again fails that input alone, with a message that says so', async () => {
    const home = join(folder, 'thrice');
    const settings = { KILL_AT: 'copied' };
    const first = await startService({ folder: home, program: KILLING_SERVICE, settings });
    const jobId = await first.submit('/v2/c2pa/video', { inputs: [{ type: 'local_file_path', path: sample }] });
    await first.ended;
    // Most of the ends that are borne are only noted: each would take a start of the service.
    const store = new DatabaseSync(join(home, 'data/jobs.sqlite'));
    store.prepare('update inputs set service_ends = ?').run(MAX_SERVICE_ENDS - 2);
    store.close();
    const next = await startService({ folder: home, program: KILLING_SERVICE, settings });
    await next.ended;

    await using service = await startService({ folder: home });
    const job = await service.waitFor(jobId);

    assert.equal(job.status, 'failed');
    assert.equal(job.results[0]?.error_details?.reason, 'INPUT_ENDED_PROCESS');
    assert.deepEqual(readdirSync(join(home, 'data', 'staging')), []);
  });
});
