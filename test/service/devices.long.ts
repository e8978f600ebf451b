import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { valueAt } from '#errors/assert.ts';
import { p1363OfDer } from '#provenance/identity/signers/signature-forms.ts';
import { SIGNING_ALGORITHMS } from '#provenance/signer.ts';
import type { RunningService } from '../../scripts/running-service.ts';
import { signDigest, startKeyService } from '../provenance/signers/key-service.ts';
import { makeToken } from '../provenance/signers/softhsm.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { childrenOf, commandOf } from '../support/process-tree.ts';
import { isRunning } from '../support/processes.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  assertHolds,
  assertSignedBy,
  IdentityConfiguration,
  outputsOf,
  reload,
  submitSounds,
  waitingFor,
} from './device-service.ts';

const identities = new Map(
  await Promise.all(
    SIGNING_ALGORITHMS.map(async (algorithm) => [algorithm, await testIdentity({ algorithm })] as const),
  ),
);
const [news, sport, otherSport] = [await testIdentity(), valueAt(identities, 'es256'), await testIdentity()];
const token = makeToken(Object.fromEntries([...identities].map(([label, { privateKey }]) => [label, privateKey])));
const NEWS = { identity: news };
const SPORT = { identity: sport, signer: token.settings('es256') };

const ENGINES: Readonly<Record<string, (t: TestContext) => Promise<Readonly<Record<string, string>>>>> = {
  'the embedded store': async () => ({}),
  PostgreSQL: async (t) => ({ SERVICE__JOBS__DATABASE_URL: await (await startPostgres(t)).createDatabase() }),
};

async function started(
  t: TestContext,
  configuration: IdentityConfiguration,
  settings?: Readonly<Record<string, string>>,
): Promise<RunningService> {
  const service = await configuration.start(settings);
  t.after(() => service.stop());
  return service;
}

/** Kills a signer that was stopped, unless the service has done so by then because it did not answer. */
function killIfRunning(signer: number): void {
  if (isRunning(signer)) process.kill(signer, 'SIGKILL');
}

/** Returns the process of the only device. */
function signerOfDevice({ pid }: RunningService): number {
  const [, device, ...others] = childrenOf(pid)
    .filter((child) => commandOf(child).includes('run-signer'))
    .sort((one, other) => one - other);
  assert.deepEqual(others, []);
  return device ?? assert.fail('there is a process of the device');
}

test('a service signs with every algorithm of a token', async (t) => {
  const configured = [...identities].map(
    ([name, identity]) => [name, { identity, signer: token.settings(name) }] as const,
  );
  const service = await started(t, new IdentityConfiguration(Object.fromEntries(configured)));
  for (const [name, identity] of identities) await assertSignedBy(service, await submitSounds(service, name), identity);
});

test('a service signs with a renewed certificate of a key in a token', async (t) => {
  const configuration = new IdentityConfiguration({ sport: SPORT });
  const service = await started(t, configuration);
  await assertSignedBy(service, await submitSounds(service, 'sport'), sport);
  const renewed = await testIdentity({ key: sport.privateKey });
  configuration.renew(sport, renewed);
  await until(async () => readFileSync(service.logPath, 'utf8').split('signing identity loaded').length === 3);
  await assertSignedBy(service, await submitSounds(service, 'sport'), renewed);
});

for (const [engine, settingsOf] of Object.entries(ENGINES)) {
  describe(`with ${engine}`, () => {
    test('nothing is lost when the process of a device is killed while it signs', async (t) => {
      const configuration = new IdentityConfiguration({ news: NEWS, sport: SPORT });
      const service = await started(t, configuration, await settingsOf(t));
      for (let round = 0; round < 3; round += 1) {
        const signer = signerOfDevice(service);
        process.kill(signer, 'SIGSTOP');
        const jobId = await submitSounds(service, 'sport', 10);
        // An input that is copied is signed next.
        await until(async () => ((await service.lookUp(jobId)).progress?.bytes_done ?? 0) > 0);
        await assertSignedBy(service, await submitSounds(service, 'news', 3), news);
        killIfRunning(signer);
        await assertSignedBy(service, jobId, sport);
      }
    });

    test('nothing is lost when processes are killed while a token is away', async (t) => {
      const configuration = new IdentityConfiguration({ news: NEWS, sport: SPORT });
      const settings = await settingsOf(t);
      const first = await configuration.start(settings);
      token.takeAway();
      t.after(() => token.bringBack());
      const jobs = [await submitSounds(first, 'sport', 10)];
      await waitingFor(first, `${jobs[0]}`);
      const signer = signerOfDevice(first);
      process.kill(signer, 'SIGKILL');
      await until(() =>
        readFileSync(first.logPath, 'utf8').includes('the signer process cannot load the signing identity'),
      );
      process.kill(first.pid, 'SIGKILL');
      await first.ended;
      const second = await started(t, configuration, settings);
      jobs.push(await submitSounds(second, 'sport', 10));
      for (const jobId of jobs)
        assert.deepEqual(
          (await waitingFor(second, jobId))?.map(({ dependency }) => dependency),
          ['signer:sport'],
        );
      await assertSignedBy(second, await submitSounds(second, 'news', 10), news);
      token.bringBack();
      for (const jobId of jobs) await assertSignedBy(second, jobId, sport);
    });

    test('nothing is lost, nor signed by another identity, when it is reloaded while it signs', async (t) => {
      const configuration = new IdentityConfiguration({ news: NEWS, sport: SPORT });
      const service = await started(t, configuration, await settingsOf(t));
      const jobs: { readonly name: string; readonly jobId: string }[] = [];
      for (const [round, own] of [{ identity: otherSport }, SPORT, { identity: otherSport }, SPORT, SPORT].entries()) {
        for (const name of ['news', 'sport', 'news', 'sport'])
          jobs.push({ name, jobId: await submitSounds(service, name, 10) });
        await until(async () => (await service.lookUp(`${jobs[round * 4]?.jobId}`)).status !== 'queued');
        configuration.write({ news: NEWS, sport: own, ...(round % 2 === 0 && { radio: { identity: otherSport } }) });
        const { status, body } = await reload(service);
        assert.equal(status, 200, body);
      }
      for (const { name, jobId } of jobs) {
        const possible = name === 'news' ? [news] : [sport, otherSport];
        for (const output of await outputsOf(service, jobId)) assertHolds(output, ...possible);
      }
    });
  });
}

test('inputs wait for a server that takes requests and answers none within 20 s', async (t) => {
  const socketPath = join(temporaryFolder(), 'keys.sock');
  const keys = await startKeyService(
    async ({ body }) => {
      const digest = Buffer.from(JSON.parse(`${body}`).digest, 'base64');
      const signature = p1363OfDer(await signDigest(sport.privateKey, 'sha256', null, digest), 64);
      return { status: 200, body: { signature: signature.toString('base64') } };
    },
    { socketPath },
  );
  const signer = { type: 'http', socket_path: socketPath, key: 'sport' };
  const service = await started(t, new IdentityConfiguration({ sport: { identity: sport, signer } }));
  keys.faults.push(...Array.from({ length: 100 }, () => 'hang' as const));
  const jobId = await submitSounds(service, 'sport');
  const [cause] = (await waitingFor(service, jobId)) ?? [];
  keys.faults.length = 0;
  assert.match(
    `${cause?.message}`,
    /the signing server at ".*keys\.sock" cannot be reached: it did not answer within 20 s/,
  );
  await assertSignedBy(service, jobId, sport);
});
