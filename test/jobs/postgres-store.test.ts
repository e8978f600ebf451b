import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JobIds } from '#jobs/job-ids.ts';
import { openPostgresStore } from '#jobs/store/postgres/postgres-job-store.ts';
import { createJobsDatabase } from '../support/jobs/jobs-database.ts';
import { NO_LOG, scripts } from '../support/jobs/test-jobs.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { describeJobControl } from './control-contract.ts';
import { describeRecognition } from './recognition-contract.ts';
import { describeRetries } from './retry-contract.ts';
import { describeJobStore } from './store-contract.ts';

const server = await startPostgres({ after });

describe('PostgreSQL', () => {
  const databaseFor = async () => {
    const url = await createJobsDatabase(server);
    return () => openPostgresStore(url, 4, NO_LOG);
  };
  describeJobStore('PostgreSQL', databaseFor);
  describeJobControl('PostgreSQL', databaseFor);
  describeRecognition('PostgreSQL', databaseFor);
  describeRetries('PostgreSQL', databaseFor);
});

test('jobs that a node excludes are all of them, or refused where they are too many for a statement', async (t) => {
  const url = await createJobsDatabase(server);
  const store = await openPostgresStore(url, 4, NO_LOG);
  t.after(() => store.close());
  const jobIds = new JobIds();
  const submit = async (caller: string) => {
    const jobId = jobIds.next();
    await store.submitJob({ ...scripts(['a']), caller, jobId, queuedAt: new Date() });
    return jobId;
  };
  const [busy, other] = [await submit('busy'), await submit('other')];
  const addJobs = (count: number) =>
    server.query(
      url,
      `insert into jobs (job_id, sync, status, queued_at, inputs_total, caller)
       select gen_random_uuid(), 0, 'queued', '2030-01-01T00:00:00.000Z', 1, 'busy' from generate_series(1, ${count})`,
    );
  await addJobs(9_999);
  assert.equal((await store.jobsOfSameCallers([busy]))?.length, 10_000);
  assert.equal((await store.otherJobs([other]))?.length, 10_000);
  await addJobs(1);
  assert.equal(await store.jobsOfSameCallers([busy]), null);
  assert.equal(await store.otherJobs([other]), null);
});
