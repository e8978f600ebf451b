import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { MAX_SERVICE_EXITS } from '#jobs/store/finish-input.ts';
import { INPUT_PHASES } from '#operations/operation.ts';
import { startService } from '../../scripts/running-service.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { KILLING_SERVICE, KilledService } from './killed-service.ts';

describe('A service that is killed while an input is', () => {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-kill-points-'));
  const sample = join(folder, 'sample.mp4');
  const service = new KilledService({ folder: join(folder, 'service') });
  const delivered: string[] = [];

  before(() => {
    const picture = ['-f', 'lavfi', '-i', 'testsrc=duration=2:size=320x240'];
    makeMedia(folder, [...picture, '-c:v', 'libx264', 'sample.mp4']);
  });
  after(async () => {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const requestFor = (name: string) => {
    const path = join(folder, `${name}.mp4`);
    copyFileSync(sample, path);
    return { inputs: [{ type: 'local_file_path', path }] };
  };

  // A file that is signed is not packaged before.
  for (const phase of INPUT_PHASES.filter((each) => each !== 'packaged')) {
    test(`${phase} finishes it after the next start, and leaves nothing staged`, async () => {
      const name = `sample-killed-when-${phase}`;
      const result = await service.finish(await service.killBy('/v2/c2pa/video', requestFor(name)));

      assert.equal(result.status, 'succeeded', result.error);
      const output = join(folder, 'service/output', `${name}_c2pa.mp4`);
      assert.equal(result.output_path, output);
      await assertValid(readFileSync(output), 'video/mp4');
      delivered.push(basename(output));
      assert.deepEqual(readdirSync(dirname(output)), delivered.toSorted());
    });
  }

  test('again and again fails that input alone, with a message that says so', async () => {
    const home = join(folder, 'thrice');
    const first = new KilledService({ folder: home });
    const jobId = await first.killBy('/v2/c2pa/video', requestFor('sample-always-killed-when-copied'));
    // Most of the ends that are borne are only noted: each would take a start of the service.
    const store = new DatabaseSync(join(home, 'data/jobs.sqlite'));
    store.prepare('update inputs set service_ends = ?').run(MAX_SERVICE_EXITS - 2);
    store.close();
    const next = await startService({ folder: home, program: KILLING_SERVICE });
    await next.ended;

    const result = await first.finish(jobId);
    await first.stop();

    assert.equal(result.status, 'failed');
    assert.equal(result.error_details?.reason, 'INPUT_ENDED_PROCESS');
  });
});
