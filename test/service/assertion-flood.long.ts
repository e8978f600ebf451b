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
  const flood = Array.from({ length: FLOOD }, (_, index) =>
    service.submit('/v2/c2pa/audio', requestWith(300, `flood-${index}`)),
  );
  const jobId = await service.submit('/v2/c2pa/audio', requestWith(1, 'small'));
  await Promise.all(flood);
  const { jobs } = (await (await fetch(`${service.base}/v2/jobs?limit=1`)).json()) as { jobs: { job_id: string }[] };
  assert.notEqual(jobs[0]?.job_id, jobId, 'others were accepted after it');
  assert.equal((await service.waitFor(jobId)).status, 'succeeded');
});
