import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import { Deliveries } from '#jobs/cluster/deliveries.ts';
import { exchangeDeliveries } from '#jobs/cluster/exchange-deliveries.ts';
import { NO_PROGRESS, type Submission, succeededEntry } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-id.ts';
import { Persistence } from '#jobs/persistence.ts';
import type { ExchangedDelivery, FinishedInput } from '#jobs/store/exchange-inputs.ts';
import { JobStore } from '#jobs/store/job-store.ts';
import { openPostgres } from '#jobs/store/postgres/open-postgres.ts';
import { startPostgres } from '../../postgres/postgres-server.ts';
import { NO_LOG, scripts } from '../test-jobs.ts';

const server = await startPostgres({ after });
const CLIENTS = 8;
const INPUTS = 60;
const jobIds = new JobIds();

function finishedOf({ id, claim }: ExchangedDelivery): FinishedInput[] {
  if (claim === null) return [];
  const entry = succeededEntry(claim.inputIndex, { outputPath: '/out', warnings: [] });
  return [{ claim, entry, progress: NO_PROGRESS, digest: null, deliveryId: id }];
}

/** A database of its own, as a node has it open. */
async function openNode(t: TestContext) {
  const url = await server.createDatabase();
  const { runner, pool } = await openPostgres(url, CLIENTS + 1);
  const deliveries = await Deliveries.open(pool, NO_LOG);
  const store = new JobStore(runner);
  t.after(async () => {
    await deliveries.close();
    await store.close();
  });
  const submit = async (submission: Submission): Promise<string> => {
    const jobId = jobIds.next();
    await store.submitJob({ ...submission, jobId, queuedAt: new Date() });
    const count = submission.request.inputs.length;
    await runner.transaction((db) => deliveries.send(db, [{ jobId, sync: false, count }]));
    return jobId;
  };
  const deliveriesLeft = async () => {
    const [left] = await server.query(url, 'select count(*)::integer as count from attestream_deliveries.job_common');
    return left?.['count'];
  };
  /** As when nothing is heard of who has a delivery. */
  const lapse = () =>
    server.query(url, "update attestream_deliveries.job_common set state = 'retry', retry_count = retry_count + 1");
  return { runner, deliveries, store, submit, deliveriesLeft, lapse };
}

describe('exchanging ends of inputs for new ones', () => {
  test('counts every end once, and ends every job once, whoever else is at the same jobs', async (t) => {
    const { runner, deliveries, store, submit, deliveriesLeft } = await openNode(t);
    const jobs: string[] = [];
    for (let job = 0; job < 3; job += 1) jobs.push(await submit(scripts(Array(INPUTS).fill('a'))));
    const ended: string[] = [];
    let recordedCount = 0;
    const client = async () => {
      let finished: FinishedInput[] = [];
      do {
        const done = await runner.statement((db) => deliveries.exchange(db, finished, 2, []));
        recordedCount += done.recorded.length;
        ended.push(...done.recorded.filter(({ jobEnded }) => jobEnded).map(({ jobId }) => jobId));
        finished = done.taken.flatMap(finishedOf);
      } while (finished.length > 0 || recordedCount < jobs.length * INPUTS);
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    assert.deepEqual(ended.sort(), [...jobs].sort());
    for (const jobId of jobs) assert.equal((await store.findJob(jobId))?.status, 'succeeded');
    assert.equal(await deliveriesLeft(), 0);
  });

  test('refuses what comes late, and leaves its delivery to whoever has it', async (t) => {
    const { runner, deliveries, store, submit, deliveriesLeft } = await openNode(t);
    const jobId = await submit(scripts(['a']));
    const { taken } = await runner.statement((db) => deliveries.exchange(db, [], 1, []));
    const { claim } = await store.takeDelivered({ jobId, inputIndex: 0 });
    assert.equal(claim?.attempt, 2);
    const { recorded } = await runner.statement((db) => deliveries.exchange(db, taken.flatMap(finishedOf), 0, []));
    assert.deepEqual(recorded, []);
    assert.equal((await store.findJob(jobId))?.status, 'running');
    assert.equal(await deliveriesLeft(), 1);
  });

  test('leaves an input to whom it was handed while this node was held up', async (t) => {
    const { runner, deliveries, store, submit, lapse } = await openNode(t);
    const jobId = await submit(scripts(['a']));
    const take = () => runner.statement((db) => deliveries.exchange(db, [], 1, []));
    await take();
    await lapse();
    let writes = 0;
    class HeldUp extends Persistence {
      override async write<T>(write: () => Promise<T>): Promise<T | undefined> {
        writes += 1;
        if (writes === 2) {
          await lapse();
          assert.equal((await take()).taken.length, 1);
        }
        return await super.write(write);
      }
    }
    const persistence = new HeldUp(NO_LOG, new AbortController().signal);
    const parties = { persistence, runner, deliveries, clock: () => performance.now() };
    const { taken } = await exchangeDeliveries(parties, [], 1, async () => []);
    assert.deepEqual([taken, writes], [[], 2]);
    const { claim } = await store.takeDelivered({ jobId, inputIndex: 0 });
    assert.equal(claim?.attempt, 2);
  });

  test('erases the secrets of a job, and has its callback sent, with its last input', async (t) => {
    const { runner, deliveries, store, submit } = await openNode(t);
    const inputs = [1, 2].map((index) => ({
      type: 'remote_file_url' as const,
      url: `https://host/${index}?key=secret`,
    }));
    const request = { inputs };
    const jobId = await submit({
      operation: 'c2pa-video',
      request,
      sync: false,
      callbackUrl: 'https://host/done?token=1',
    });
    const { taken } = await runner.statement((db) => deliveries.exchange(db, [], 2, []));
    assert(taken.every(({ hasUrlSecrets }) => hasUrlSecrets));
    for (const [index, one] of taken.entries()) {
      assert.equal((await store.claimCallbacks(10, 1_000)).length, 0);
      const { recorded } = await runner.transaction((db) => deliveries.exchange(db, finishedOf(one), 0, []));
      assert.deepEqual(
        recorded.map(({ jobEnded }) => jobEnded),
        [index === 1],
      );
    }
    assert.equal((await store.claimCallbacks(10, 1_000))[0]?.jobId, jobId);
    const places = await store.placesOfJob(jobId);
    assert(!JSON.stringify(places).includes('secret'));
  });
});
