import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { MAX_SERVICE_EXITS } from '#jobs/store/finish-input.ts';
import { INPUT_PHASES } from '#operations/operation.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { testKills } from './kill-at-phase.ts';
import { KilledService } from './killed-service.ts';

/** Lists the phases of media that is signed as it is: nothing is packaged before. */
const WITHOUT_PACKAGING = INPUT_PHASES.filter((phase) => phase !== 'packaged');

// Those that kill-points.test.ts leaves out.
testKills({
  signFile: WITHOUT_PACKAGING.filter((phase) => phase !== 'sealed'),
  signPublication: WITHOUT_PACKAGING,
  packageMedia: ['staged', 'delivered'],
  packageAndSign: INPUT_PHASES,
});

test('An input that ends the service again and again fails alone, with a message that says so', async (t) => {
  const folder = temporaryFolder();
  const service = new KilledService({ folder });
  t.after(() => service.stop());
  const path = join(folder, 'always-killed-when-copied.wav');
  writeFileSync(path, smallWav());
  const jobId = await service.killBy('/v2/c2pa/audio', { inputs: [{ type: 'local_file_path', path }] });
  // The exits before the last are only noted: each would take a start of the service.
  const store = new DatabaseSync(join(folder, 'data/jobs.sqlite'));
  store.prepare('update inputs set service_ends = ?').run(MAX_SERVICE_EXITS - 1);
  store.close();
  const result = await service.finish(jobId);
  assert.equal(result.status, 'failed');
  assert.equal(result.error_details?.reason, 'INPUT_ENDED_PROCESS');
});
