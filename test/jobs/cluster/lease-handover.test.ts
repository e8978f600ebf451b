import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JobIds } from '#jobs/job-ids.ts';
import { requeueInput } from '#jobs/store/finish-input.ts';
import { leaseInput } from '#jobs/store/lease-inputs.ts';
import { openPostgres } from '#jobs/store/postgres/postgres-database.ts';
import { submitJob } from '#jobs/store/submit-job.ts';
import { createJobsDatabase } from '../../support/jobs/jobs-database.ts';
import { scripts, until } from '../../support/jobs/test-jobs.ts';
import { startPostgres } from '../../support/servers/postgres-server.ts';

const server = await startPostgres({ after });

describe('an input that changes hands', () => {
  test('is leased by the node that has its job message, also while the other node queues it again', async (t) => {
    const url = await createJobsDatabase(server);
    const database = await openPostgres(url, 4);
    t.after(() => database.close());
    const input = { jobId: new JobIds().next(), inputIndex: 0 };
    const job = { ...scripts(['a']), jobId: input.jobId, queuedAt: new Date() };
    await database.transaction((db) => submitJob(db, job));
    const { lease } = await database.transaction((db) => leaseInput(db, input));
    assert(lease !== null);
    const [queued, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const queuing = database.transaction(async (db) => {
      await requeueInput(db, lease);
      queued.resolve();
      await mayCommit.promise;
    });
    await queued.promise;
    const leasing = database.transaction((db) => leaseInput(db, input));
    await until(async () => (await server.query(url, 'select 1 from pg_locks where not granted')).length > 0);
    mayCommit.resolve();
    await queuing;
    assert.equal((await leasing).lease?.attempt, 2);
  });
});
