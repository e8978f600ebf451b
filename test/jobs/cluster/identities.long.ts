import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import type { Config } from '#config/config.ts';
import type { AppError } from '#errors/app-error.ts';
import { inertSigner } from '../../support/jobs/inert-signer.ts';
import { createJobsDatabase } from '../../support/jobs/jobs-database.ts';
import { TestIdentities, withIdentities } from '../../support/jobs/test-identities.ts';
import { ended, keptLog, nodeConfig, scripts, startedJobs, until } from '../../support/jobs/test-jobs.ts';
import { startPostgres } from '../../support/servers/postgres-server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const server = await startPostgres({ after });

test('nodes lease only inputs whose identity they have, and tell of one that none has', async (t) => {
  const url = await createJobsDatabase(server);
  const start = (role: Config['jobs']['role'], ...names: string[]) =>
    startedJobs(t, {
      config: withIdentities(nodeConfig(temporaryFolder(), url, { role }), 'news', 'sport'),
      ...(names.length > 0 && { signer: new TestIdentities(...names).signer }),
    });
  const api = await start('api');
  const news = await start('worker', 'news');
  const submit = async (identity: string) => (await api.submit(scripts(['progress 1'], { identity }))).job_id;
  const held = await submit('sport');
  for (let job = 0; job < 20; job += 1) assert.equal((await ended(api, await submit('news'))).status, 'succeeded');
  for (const jobs of [api, news]) {
    await jobs.identitiesChanged();
    const [waiting] = (await jobs.find(held))?.waiting_for ?? [];
    assert.deepEqual([waiting?.dependency, waiting?.reason], ['signer:sport', 'IDENTITY_ABSENT']);
    const { ready, dependencies } = await jobs.readiness();
    assert.deepEqual([ready, dependencies.map(({ dependency }) => dependency)], [true, ['signer:sport']]);
  }
  await start('worker', 'sport');
  assert.equal((await ended(api, held)).status, 'succeeded');
  for (const jobs of [api, news]) {
    await until(async () => {
      await jobs.identitiesChanged();
      return (await jobs.readiness()).dependencies.length === 0;
    });
  }
});

test('a node with named identities does not start beside one of a release that would sign with its own', async (t) => {
  const url = await createJobsDatabase(server);
  const start = (...names: string[]) => {
    const config = nodeConfig(temporaryFolder(), url);
    return startedJobs(t, { config: names.length === 0 ? config : withIdentities(config, ...names) });
  };
  const client = new pg.Client(url);
  await client.connect();
  t.after(() => client.end());
  const older = { outputRoots: {}, identity: { subject: 'CN=news', certificateSha256: 'ab' } };
  await start();
  await client.query(`insert into nodes values ('older', 'a host', '${JSON.stringify(older)}', 0)`);
  const beat = () =>
    client.query("update nodes set seen_at_ms = extract(epoch from clock_timestamp()) * 1000 where node_id = 'older'");
  await beat();
  const heartbeats = setInterval(beat, 500);
  t.after(() => clearInterval(heartbeats));
  await start();
  await assert.rejects(start('news'), { reason: 'NODE_KNOWS_ONE_IDENTITY', message: /a host/ });
  clearInterval(heartbeats);
  await client.query("delete from nodes where node_id = 'older'");
  await start('news');
});

test('nodes tell of other certificates under one name, also those of a node that knows one identity', async (t) => {
  const url = await createJobsDatabase(server);
  const start = async (certificate: string) => {
    const log = keptLog();
    const { signer } = inertSigner(new Date('2100-01-01'), certificate);
    await startedJobs(t, { config: nodeConfig(temporaryFolder(), url), signer, log });
    const warned = () =>
      log.lines
        .filter(({ message }) => message === 'nodes sign with different certificates under one name')
        .flatMap(({ fields }) => (fields as { others: { subject: string; certificateSha256: string }[] }).others);
    return warned;
  };
  const first = await start('first');
  const same = await start('first');
  const other = await start('other');
  await until(() => first().length === 1 && same().length === 1 && other().length === 1);
  await joinOlder(url, { subject: 'CN=Older', certificateSha256: '00' });
  await until(() => [first, same, other].every((warned) => warned().some(({ subject }) => subject === 'CN=Older')));
});

test('the identity of a node that knows only one is the default', async (t) => {
  const url = await createJobsDatabase(server);
  const api = await startedJobs(t, { config: nodeConfig(temporaryFolder(), url, { role: 'api' }) });
  await joinOlder(url, { subject: 'CN=Older', certificateSha256: '00', notAfter: '2020-01-01T00:00:00.000Z' });
  // Nodes are not looked at for each submission.
  const answer = () =>
    api.submit(scripts(['echo'])).then(
      ({ status }) => status,
      ({ reason }: AppError) => reason,
    );
  await until(async () => (await answer()) === 'NO_VALID_IDENTITY');
  await joinOlder(url, { subject: 'CN=Older', certificateSha256: '00' });
  await until(async () => (await answer()) === 'queued');
  await api.identitiesChanged();
  assert.deepEqual((await api.readiness()).dependencies, []);
});

/** Records a node of a release that knows one identity, which is seen once. */
async function joinOlder(url: string, identity: object): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(
    'insert into nodes (node_id, name, settings, seen_at_ms) values (gen_random_uuid()::text, $1, $2, $3)',
    ['older', JSON.stringify({ outputRoots: {}, identity }), Date.now()],
  );
  await client.end();
}
