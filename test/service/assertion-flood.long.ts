import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startService } from '../../scripts/running-service.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FLOOD = 20;

test('a small request is accepted while twenty requests with 300 assertions each are checked', async () => {
  const folder = temporaryFolder();
  const path = join(folder, 'talk.wav');
  writeFileSync(path, smallWav());
  await using service = await startService({ folder: join(folder, 'service') });
  const requestWith = (count: number, prefix: string) => ({
    inputs: [{ type: 'local_file_path', path }],
    output: { type: 'local', prefix },
    params: { assertions: Array.from({ length: count }, (_, index) => ({ label: `com.example.a${index}`, data: 1 })) },
  });
  let acceptedCount = 0;
  const flood = Array.from({ length: FLOOD }, async (_, index) => {
    await service.submit('/v2/c2pa/audio', requestWith(300, `flood-${index}`));
    acceptedCount += 1;
  });
  await Promise.any(flood);
  const jobId = await service.submit('/v2/c2pa/audio', requestWith(1, 'small'));
  assert.ok(acceptedCount < FLOOD, 'the others are still being checked');
  await Promise.all(flood);
  assert.equal((await service.waitFor(jobId)).status, 'succeeded');
});
