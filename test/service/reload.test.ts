import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Config } from '#config/config.ts';
import { loadConfig } from '#config/load-config.ts';
import { AppError } from '#errors/app-error.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import { Reloads } from '../../src/reload.ts';
import { TestIdentities } from '../support/jobs/test-identities.ts';
import { keptLog } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const BY = { caller: 'desk' };

const identity = (name: string) => `
[signing.identities.${name}]
certificate_path = "/etc/attestream/${name}.pem"
signer = { type = "pem", private_key_path = "/etc/attestream/${name}.key" }
`;

const auth = (caller: string, identities: string) => `
[auth]
tokens = [{ name = "${caller}", token = "a-token-of-${caller}-with-32-characters" }]
[auth.callers.${caller}]
identities = ["${identities}"]
`;

/** A service that is configured by a file, and whose identities and trust lists say what they were given. */
async function configured(text: string) {
  const file = join(temporaryFolder(), 'service.toml');
  const write = (next: string) => writeFile(file, next);
  await write(text);
  const load = () => loadConfig({ env: { SERVICE_CONFIG_PATH: file }, cwd: '/' });
  const given: Config[] = [];
  const trusted: Config['trust'][] = [];
  let refusal: AppError | null = null;
  const identities = Object.assign(new TestIdentities('news'), {
    reload: async (config: Config) => {
      if (refusal !== null) throw refusal;
      given.push(config);
    },
  });
  const log = keptLog();
  const reloads = new Reloads({
    ...{ config: await load(), load, identities, log },
    trust: {
      current: NO_TRUST_LISTS,
      prepare: async (settings) => () => void trusted.push(settings as Config['trust']),
    },
    identitiesChanged: async () => undefined,
  });
  const refuse = (error: AppError) => {
    refusal = error;
  };
  return { reloads, write, log, given, trusted, refuse };
}

test('a reload takes over identities, tokens, callers and trust, and names what needs a restart', async () => {
  const { reloads, write, given, trusted, log } = await configured(`${auth('desk', 'news')}${identity('news')}`);
  await write(
    `${auth('newsroom', 'sport')}[signing]\ndefault_identity = "sport"\nverify_outputs = false\n${identity('news')}${identity('sport')}
[trust]\nanchors = ["/etc/lists"]\n[worker.budgets]\ncpu_seconds_base = 99\n`,
  );
  const answer = await reloads.reload(BY);
  const { signing, trust, worker } = reloads.config;
  assert.deepEqual([signing.default_identity, Object.keys(signing.identities)], ['sport', ['news', 'sport']]);
  assert.deepEqual(trust.anchors, ['/etc/lists']);
  assert.deepEqual([given[0]?.signing, trusted[0]?.anchors], [signing, ['/etc/lists']]);
  assert.deepEqual([answer.tokens, answer.callers], [1, ['newsroom']]);
  assert.deepEqual([...answer.needs_restart].sort(), ['signing.verify_outputs', 'worker.budgets.cpu_seconds_base']);
  assert.deepEqual([signing.verify_outputs, worker.budgets.cpu_seconds_base === 99], [true, false]);
  assert.deepEqual(
    log.lines.map(({ level, message, fields }) => [level, message, 'caller' in fields && fields.caller]),
    [['info', 'configuration reloaded', 'desk']],
  );
  assert.doesNotMatch(JSON.stringify(log.lines), /a-token-of/);
});

test('a reload with a configuration that cannot be used says why, and changes nothing', async () => {
  const { reloads, write, given, trusted, refuse, log } = await configured(
    `${auth('desk', 'news')}${identity('news')}`,
  );
  const before = reloads.config;
  await write(`${auth('desk', 'weather')}${identity('news')}`);
  const refused = await reloads.reload(BY).catch((error) => error);
  assert(refused instanceof AppError);
  assert.equal(refused.reason, 'RELOAD_REFUSED');
  assert.match(refused.message, /auth\.callers\.desk\.identities: names weather/);
  await write(`${auth('desk', 'sport')}${identity('sport')}`);
  refuse(new AppError('IDENTITY_FILE_UNREADABLE', { file: '/etc/attestream/sport.pem', problem: 'it is not there' }));
  await assert.rejects(reloads.reload(BY), { reason: 'RELOAD_REFUSED', message: /sport\.pem.*Correct the path/ });
  assert.deepEqual([reloads.config, given, trusted], [before, [], []]);
  assert.deepEqual(
    log.lines.map(({ level }) => level),
    ['warn', 'warn'],
  );
});

test('what was removed from the configuration is not in force after a reload', async () => {
  const { reloads, write } = await configured(
    `[signing]\ndefault_identity = "news"\n${identity('news')}${auth('desk', 'news')}`,
  );
  await write(`${identity('sport')}${auth('newsroom', 'sport')}`);
  await reloads.reload(BY);
  const { signing, auth: now } = reloads.config;
  assert.deepEqual([signing.default_identity, Object.keys(signing.identities)], [undefined, ['sport']]);
  assert.deepEqual([now.tokens.map(({ caller }) => caller), Object.keys(now.callers)], [['newsroom'], ['newsroom']]);
});

test('a reload of a file that is half written neither opens the service nor leaves it without its identities', async () => {
  const whole = `${identity('news')}${auth('desk', 'news')}`;
  const { reloads, write, given } = await configured(whole);
  const lost = {
    [whole.slice(0, whole.indexOf('[auth.callers'))]: /auth\.callers: is not set any more/,
    [identity('news')]: /auth\.tokens: is not set any more/,
    '': /signing\.identities: is not set any more/,
  };
  const before = reloads.config;
  for (const [text, message] of Object.entries(lost)) {
    await write(text);
    await assert.rejects(reloads.reload(BY), { reason: 'RELOAD_REFUSED', message });
  }
  assert.deepEqual([reloads.config, given], [before, []]);
});
