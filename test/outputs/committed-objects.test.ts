import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CommittedObjects } from '#outputs/s3/committed-objects.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('jobs that commit to one destination at once all record what they committed, and one record stays', async () => {
  const dataDir = temporaryFolder();
  const destination = 's3://bucket/talk';
  const tagsOf = (job: number) => new Map([['index.m3u8', String(job)]]);
  const jobs = Array.from({ length: 20 }, (_, job) => job);
  await Promise.all(jobs.map((job) => new CommittedObjects(dataDir).record(destination, tagsOf(job))));
  assert.equal((await new CommittedObjects(dataDir).at(destination)).size, 1);
  assert.equal(readdirSync(join(dataDir, 'deliveries-s3')).length, 1);
});
