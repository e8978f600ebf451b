import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startService } from '../../scripts/running-service.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { temporaryFolder } from '../support/media/make-film.ts';

const FLOOD = 10;

test('a small request is answered while ten requests with 1,000 assertions each are checked', async (context) => {
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
  const startMs = performance.now();
  const flood = Array.from({ length: FLOOD }, async (_, index) => {
    await service.submit('/v2/c2pa/audio', requestWith(1_000, `flood-${index}`));
    acceptedCount += 1;
  });
  await Promise.any(flood);
  const smallMs = performance.now();
  const { status } = await service.runSync('/v2/sync/c2pa/audio', requestWith(1, 'small'));
  const answeredMs = performance.now();
  assert.equal(status, 'succeeded');
  assert.ok(acceptedCount < FLOOD, 'the others are still being checked');
  await Promise.all(flood);
  const [small, all] = [answeredMs - smallMs, performance.now() - startMs].map(Math.round);
  context.diagnostic(`answered in ${small} ms; all ${FLOOD} were accepted after ${all} ms`);
});
