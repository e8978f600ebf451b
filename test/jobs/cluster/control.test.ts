import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '#config/config.ts';
import { DeniedNetworks } from '#inputs/guarded-request.ts';
import { guardedPost } from '#jobs/callback-sender.ts';
import type { Jobs } from '#jobs/jobs.ts';
import { type Notification, NotificationListener } from '#jobs/store/postgres/notifications.ts';
import { createJobsDatabase } from '../../support/jobs/jobs-database.ts';
import {
  ended,
  NO_LOG,
  nodeConfig,
  resultsOf,
  scripts,
  startedJobs,
  temporaryFolder,
  until,
} from '../../support/jobs/test-jobs.ts';
import { startReceiver } from '../../support/servers/callback-receiver.ts';
import { startPostgres } from '../../support/servers/postgres-server.ts';

const server = await startPostgres({ after });

/** Nodes of this process that share a database, and send callbacks. */
async function nodes(t: TestContext, roles: readonly Config['jobs']['role'][]): Promise<[Jobs, ...Jobs[]]> {
  const url = await createJobsDatabase(server);
  const post = guardedPost(new DeniedNetworks([]));
  const started = roles.map(async (role) => {
    const config = nodeConfig(await temporaryFolder(t), url, { role });
    const callbacks = { secret: 'a secret of the tests' };
    return startedJobs(t, { config: { ...config, callbacks }, post, callbackLimits: { pollIntervalMs: 20 } });
  });
  return (await Promise.all(started)) as [Jobs, ...Jobs[]];
}

test('a listener ignores what other programs, and nodes of other releases, send on the channel', async (t) => {
  const url = await server.createDatabase();
  const received: Notification[] = [];
  const connected = Promise.withResolvers<void>();
  const listener = new NotificationListener(url, NO_LOG, (one) => received.push(one), connected.resolve);
  t.after(() => listener.close());
  await connected.promise;
  const foreign = [
    '',
    'no JSON',
    'null',
    '{"type":"later","jobId":"a"}',
    '{"type":"ended"}',
    '{"type":"cancelled","jobId":1}',
  ];
  for (const payload of [...foreign, '{"type":"ended","jobId":"b"}'])
    await server.query(url, `select pg_notify('attestream', '${payload}')`);
  await until(() => received.length > 0);
  assert.deepEqual(received, [{ type: 'ended', jobId: 'b' }]);
});

describe('nodes that share a database', () => {
  test('make one job of what is sent to all of them with the same idempotency key', async (t) => {
    const all = await nodes(t, ['all', 'api', 'all']);
    const submission = { ...scripts(['progress 1']), idempotency: { key: 'k', digest: 'd' } };
    const submitted = await Promise.all([...all, ...all, ...all].map((node) => node.submit(submission)));
    assert.equal(new Set(submitted.map((job) => job.job_id)).size, 1);
    assert.equal(submitted.filter((job) => !job.replayed).length, 1);
    assert.equal((await all[0].list({ limit: 10 })).jobs.length, 1);
    assert.equal((await ended(all[0], submitted[0]?.job_id ?? '')).status, 'succeeded');
  });

  test('tell what happens to jobs that others run', async (t) => {
    const [taking] = await nodes(t, ['api', 'worker']);
    const { job_id: jobId } = await taking.submit(scripts(['sleep 300', 'fail /x', 'progress 1']));
    const told: number[] = [];
    let last = '';
    for await (const { type, job } of (await taking.events(jobId, new AbortController().signal)) ?? []) {
      if (type === 'input') told.push(...resultsOf(job).map((entry) => entry.input_index));
      last = type;
    }
    assert.equal(last, 'done');
    // A job that finished before it was followed reports everything with its end.
    assert.ok(told.length === 0 || told.length === 3);
  });

  test('send a callback once where it is taken, whichever of them ends the job', async (t) => {
    const receiver = await startReceiver(t);
    const [taking] = await nodes(t, ['api', 'worker', 'all']);
    const jobs = Array.from({ length: 10 }, () =>
      taking.submit({ ...scripts(['progress 1']), callbackUrl: receiver.url }),
    );
    const ids = (await Promise.all(jobs)).map((job) => job.job_id);
    await receiver.came(10);
    await sleep(200);
    assert.deepEqual(receiver.received.map(({ body }) => JSON.parse(body).job_id).sort(), ids.sort());
  });
});
