import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { signs } from '#contract/signing-operations.ts';
import { JobIds } from '#jobs/job-ids.ts';
import type { Jobs } from '#jobs/jobs.ts';
import { openSqliteEngine } from '#jobs/queue/sqlite-queue.ts';
import { operations } from '#operations/registry.ts';
import { TestIdentities, withIdentities } from '../support/jobs/test-identities.ts';
import {
  configFor,
  ended,
  keptLog,
  linesOf,
  NO_LOG,
  type Scope,
  scripts,
  startedJobs,
  until,
} from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Jobs of a node that is configured with the identities `news`, its default, and `sport`. */
async function newsAndSport(t: Scope, folder: string, identities: TestIdentities): Promise<Jobs> {
  return startedJobs(t, { config: withIdentities(configFor(folder), 'news', 'sport'), signer: identities.signer });
}

const submit = async (jobs: Jobs, script: string, identity: string) =>
  (await jobs.submit({ ...scripts([script]), identity })).job_id;

/** Resolves with what a job waits for, when that is something. */
async function waiting(jobs: Jobs, jobId: string) {
  await until(async () => (await jobs.find(jobId))?.waiting_for !== undefined);
  const [first] = (await jobs.find(jobId))?.waiting_for ?? [];
  return first;
}

test('the operations that sign are known by their names', () => {
  for (const operation of operations) assert.equal(signs(operation.name), operation.signs, operation.name);
});

test('a job whose identity is away waits for it and says so, and others go on', async (t) => {
  const folder = temporaryFolder();
  const identities = new TestIdentities('news', 'sport');
  identities.remove('sport', 'the token shows its final try');
  const jobs = await newsAndSport(t, folder, identities);
  const log = join(folder, 'log');
  const held = await submit(jobs, `append ${log}`, 'sport');
  assert.equal((await ended(jobs, await submit(jobs, 'echo', 'news'))).status, 'succeeded');
  await jobs.identitiesChanged();
  const { dependency, reason, message, inputs } = (await waiting(jobs, held)) ?? {};
  assert.deepEqual([dependency, reason, inputs], ['signer:sport', 'IDENTITY_AWAY', 1]);
  assert.match(message ?? '', /"sport".*the token shows its final try/);
  const { ready, dependencies, identities: shown } = await jobs.readiness();
  assert.deepEqual([ready, dependencies.map((one) => one.dependency)], [true, ['signer:sport']]);
  assert.deepEqual(
    shown?.map(({ name, key_kind, away }) => [name, key_kind, away?.reason]),
    [
      ['news', 'pem', undefined],
      ['sport', 'pem', 'SIGNATURE_FAILED'],
    ],
  );
  assert.deepEqual(await linesOf(log), []);
  identities.add('sport');
  await jobs.identitiesChanged();
  assert.equal((await ended(jobs, held)).status, 'succeeded');
  assert.deepEqual((await jobs.readiness()).dependencies, []);
});

test('a job whose identity no node has is left alone until a node has it', async (t) => {
  const folder = temporaryFolder();
  const identities = new TestIdentities('news');
  const log = keptLog();
  const config = withIdentities(configFor(folder), 'news', 'sport');
  const jobs = await startedJobs(t, { config, signer: identities.signer, log });
  const held = await submit(jobs, `append ${join(folder, 'log')}`, 'sport');
  await jobs.identitiesChanged();
  const { dependency, reason, message } = (await waiting(jobs, held)) ?? {};
  assert.deepEqual([dependency, reason], ['signer:sport', 'IDENTITY_ABSENT']);
  assert.match(message ?? '', /"sport".*signing\.identities/);
  const told = log.lines.filter(({ level, fields }) => level === 'warn' && 'dependency' in fields);
  assert.deepEqual(
    told.map(({ fields }) => (fields as { dependency: string }).dependency),
    ['signer:sport'],
  );
  identities.add('sport');
  await jobs.identitiesChanged();
  assert.equal((await ended(jobs, held)).status, 'succeeded');
});

for (const [problem, reason] of [
  [undefined, 'IDENTITY_ABSENT'],
  ['it is away', 'IDENTITY_AWAY'],
] as const) {
  test(`jobs whose identity no node has, or can use, end with ${reason} when they have waited for too long`, async (t) => {
    const config = withIdentities(configFor(temporaryFolder()), 'news', 'sport');
    const identities = new TestIdentities('news', 'sport');
    identities.remove('sport', problem);
    const jobs = await startedJobs(t, {
      config: { ...config, jobs: { ...config.jobs, outage_hours: 0 } },
      signer: identities.signer,
    });
    const { job_id: held } = await jobs.submit({ ...scripts(['echo', 'echo']), identity: 'sport' });
    await jobs.identitiesChanged();
    const { status, results } = await ended(jobs, held);
    assert.deepEqual(
      [status, results.map(({ error_details: details }) => details?.reason)],
      ['failed', [reason, reason]],
    );
    assert.equal((await ended(jobs, await submit(jobs, 'echo', 'news'))).status, 'succeeded');
  });
}

test('an input whose identity a reload took away after its lease waits for that, and nothing of it runs', async (t) => {
  const folder = temporaryFolder();
  const identities = new TestIdentities('news', 'sport');
  const identityOf = identities.identityOf.bind(identities);
  identities.identityOf = (name) => (name === 'sport' ? null : identityOf(name));
  const jobs = await newsAndSport(t, folder, identities);
  const log = join(folder, 'log');
  const held = await submit(jobs, `append ${log}`, 'sport');
  assert.equal((await waiting(jobs, held))?.reason, 'IDENTITY_ABSENT');
  assert.deepEqual(await linesOf(log), []);
  identities.identityOf = identityOf;
  assert.equal((await ended(jobs, held)).status, 'succeeded');
});

test('a command does not wait for an identity that is away, but tries its inputs a few times', async (t) => {
  const identities = new TestIdentities('sport');
  identities.remove('news', 'it is away');
  const log = keptLog();
  const config = withIdentities(configFor(temporaryFolder()), 'news', 'sport');
  const jobs = await startedJobs(t, { config, signer: identities.signer, log, retriesOutages: true });
  const held = await submit(jobs, 'echo', 'news');
  await until(() => log.lines.some(({ message }) => message === 'input is tried again'));
  await jobs.cancel(held);
});

test('a node is not ready when all its identities are away', async (t) => {
  const identities = new TestIdentities('news');
  const jobs = await newsAndSport(t, temporaryFolder(), identities);
  assert.equal((await jobs.readiness()).ready, true);
  identities.remove('news', 'it is away');
  assert.equal((await jobs.readiness()).ready, false);
});

test('an identity that ended refuses the jobs that need it, and no others', async (t) => {
  const identities = new TestIdentities('news', 'sport');
  const jobs = await newsAndSport(t, temporaryFolder(), identities);
  identities.identities = identities.identities.map((one) =>
    one.name === 'sport' ? { ...one, notAfter: '2020-01-01T00:00:00.000Z' } : one,
  );
  await assert.rejects(submit(jobs, 'echo', 'sport'), {
    reason: 'NO_VALID_IDENTITY',
    details: { identity: 'sport', notAfter: '2020-01-01T00:00:00.000Z' },
  });
  assert.equal((await ended(jobs, await submit(jobs, 'echo', 'news'))).status, 'succeeded');
});

test('jobs of older releases, which name no identity, sign with the default', async (t) => {
  const folder = temporaryFolder();
  const config = withIdentities(configFor(folder), 'news', 'sport');
  const engine = await openSqliteEngine(folder, NO_LOG);
  const jobId = new JobIds().next();
  await engine.store.submitJob({ ...scripts(['echo']), jobId, queuedAt: new Date(), needs: [['signer']] });
  await engine.close();
  const sport = new TestIdentities('sport');
  const jobs = await startedJobs(t, { config, signer: sport.signer });
  const other = await submit(jobs, 'echo', 'sport');
  assert.equal((await ended(jobs, other)).status, 'succeeded');
  const { status, identity } = (await jobs.find(jobId)) ?? {};
  assert.deepEqual([status, identity], ['queued', 'default']);
  sport.add('news');
  await jobs.identitiesChanged();
  assert.equal((await ended(jobs, jobId)).status, 'succeeded');
});
