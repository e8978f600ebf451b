import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildShim, makeToken, PIN } from '../provenance/signers/softhsm.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { childrenOf, commandOf } from '../support/process-tree.ts';
import {
  assertSignedBy,
  dependenciesAway,
  IdentityConfiguration,
  reload,
  submitSounds,
  waitingFor,
} from './device-service.ts';

const WRONG_PIN = '4321-mistaken';

test('a wrong PIN is tried once, and once more after a reload; its inputs wait until the file holds the right one', async () => {
  const [news, sport] = [await testIdentity(), await testIdentity()];
  const token = makeToken({ sport: sport.privateKey });
  const module = buildShim(token.folder);
  const logins = () => statSync(join(token.folder, 'logins')).size;
  writeFileSync(token.pinPath, WRONG_PIN);
  const configuration = new IdentityConfiguration({
    news: { identity: news },
    sport: { identity: sport, signer: token.settings('sport', { module }) },
  });
  const logPath = join(configuration.folder, 'service/service.log');

  const first = await configuration.start();
  const waiting = await submitSounds(first, 'sport');
  const [cause] = (await waitingFor(first, waiting)) ?? [];
  assert.equal(cause?.dependency, 'signer:sport');
  assert.match(cause.message, /did not accept the PIN .* Correct the PIN/);
  await assertSignedBy(first, await submitSounds(first, 'news'), news);
  const dependencies = await dependenciesAway(first);
  assert.deepEqual(
    dependencies.map(({ dependency }) => dependency),
    ['signer:sport'],
  );
  assert.match(JSON.stringify(dependencies), /did not accept the PIN .* Correct the PIN/);
  const signer = childrenOf(first.pid).findLast((pid) => commandOf(pid).includes('run-signer'));
  process.kill(signer ?? assert.fail('there is a signer process'), 'SIGKILL');
  await until(() => readFileSync(logPath, 'utf8').includes('the signer process exited and is restarted'));
  await first.stop();

  await using second = await configuration.start();
  assert.equal(logins(), 1);
  const reloaded = await reload(second);
  assert.equal(reloaded.status, 200);
  assert.match(reloaded.body, /SIGNER_PIN_REFUSED/);
  assert.equal(logins(), 2);
  writeFileSync(token.pinPath, PIN);
  await assertSignedBy(second, waiting, sport);
  assert(!readFileSync(logPath, 'utf8').includes(WRONG_PIN));
  assert.match(readFileSync(logPath, 'utf8'), /"dependency":"signer:sport","reason":"SIGNER_PIN_REFUSED"/);
});
