import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JobIds } from '#jobs/job-ids.ts';
import { openSqlite } from '#jobs/store/sqlite/sqlite-job-store.ts';
import { resultsOf, scripts } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { describeJobControl } from './control-contract.ts';
import { describeRecognition } from './recognition-contract.ts';
import { describeRetries } from './retry-contract.ts';
import { describeJobStore } from './store-contract.ts';

describe('SQLite', () => {
  const databaseFor = async () => {
    const folder = temporaryFolder();
    return () => openSqlite(folder);
  };
  describeJobStore('SQLite', databaseFor);
  describeJobControl('SQLite', databaseFor);
  describeRecognition('SQLite', databaseFor);
  describeRetries('SQLite', databaseFor);
});

const INPUTS = 10_000;
const LOOK_UPS = 60;

test('a submission does not wait for all look-ups of large jobs that were asked for before it', async (t) => {
  const store = await openSqlite(temporaryFolder());
  t.after(() => store.close());
  const ids = new JobIds();
  const submit = async (inputs: readonly string[]): Promise<string> => {
    const jobId = ids.next();
    await store.submitJob({ ...scripts(inputs), jobId, queuedAt: new Date() });
    return jobId;
  };
  const large = await submit(Array.from({ length: INPUTS }, () => 'x'));
  await store.cancelJob(large);
  let found = 0;
  const looks = Array.from({ length: LOOK_UPS }, async () => {
    assert.equal(resultsOf(await store.findJob(large)).length, INPUTS);
    found += 1;
  });
  await submit(['x']);
  assert.ok(found < LOOK_UPS / 2, `${found} look-ups came first`);
  await Promise.all(looks);
});
