import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { testKills } from './kill-at-phase.ts';
import { KilledService } from './killed-service.ts';

test('A file that was published when the service was killed is not signed again with other bytes', async (t) => {
  const folder = temporaryFolder();
  const path = join(folder, 'killed-when-delivered.wav');
  writeFileSync(path, smallWav());
  const service = new KilledService({ folder: join(folder, 'service') });
  t.after(() => service.stop());
  const output = join(folder, 'service/output/killed-when-delivered_c2pa.wav');
  let published = Buffer.alloc(0);
  const jobId = await service.killBy('/v2/c2pa/audio', { inputs: [{ type: 'local_file_path', path }] }, async () => {
    published = readFileSync(output);
  });
  assert.equal((await service.finish(jobId)).output_path, output);
  assert.deepEqual(readFileSync(output), published);
});

testKills({ signFile: ['sealed'], signPublication: [], packageMedia: ['packaged'], packageAndSign: [] });
