import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JobIds } from '#jobs/job-id.ts';
import { JobStore } from '#jobs/store/job-store.ts';
import { openPostgres } from '#jobs/store/postgres/open-postgres.ts';
import { startPostgres } from '../../postgres/postgres-server.ts';
import { scripts, until } from '../test-jobs.ts';

const server = await startPostgres({ after });

describe('an input that changes hands', () => {
  test('is claimed by who takes its delivery, also while who had it queues it again', async (t) => {
    const url = await server.createDatabase();
    const { runner } = await openPostgres(url, 4);
    const store = new JobStore(runner);
    t.after(() => store.close());
    const delivered = { jobId: new JobIds().next(), inputIndex: 0 };
    await store.submitJob({ ...scripts(['a']), jobId: delivered.jobId, queuedAt: new Date() });
    const { claim } = await store.takeDelivered(delivered);
    assert(claim !== null);
    const [queued, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const queuing = runner.transaction(async (db) => {
      await runner.within(db, 'requeueInput', [claim]);
      queued.resolve();
      await mayCommit.promise;
    });
    await queued.promise;
    const taking = store.takeDelivered(delivered);
    await until(async () => (await server.query(url, 'select 1 from pg_locks where not granted')).length > 0);
    mayCommit.resolve();
    await queuing;
    assert.equal((await taking).claim?.attempt, 2);
  });
});
