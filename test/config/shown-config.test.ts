import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownConfig } from '#config/config.ts';
import { loadConfig } from '#config/load-config.ts';

test('what is shown of a configuration holds no secret, and says which are set', async () => {
  const env = {
    SERVICE__AUTH__TOKENS: 'hush-token',
    SERVICE__JOBS__DATABASE_URL: 'postgres://hush-user:hush-password@db.example:5432/jobs',
    SERVICE__SIGNING__CERTIFICATE_PATH: '/keys/chain.pem',
    SERVICE__SIGNING__PRIVATE_KEY_PATH: '/keys/key.pem',
    SERVICE__SIGNING__PRIVATE_KEY_PASSPHRASE: 'hush-passphrase',
    SERVICE__SIGNING__TSA_URL: 'https://hush-user:hush@tsa.example/stamp?key=hush#hush',
    SERVICE__CALLBACKS__SECRET: 'hush-hush-hush-hush',
    SERVICE__TELEMETRY__OTLP_ENDPOINT: 'https://hush:hush@otlp.example/v1/traces?token=hush',
  };
  const { settings, withheld } = shownConfig(await loadConfig({ env, cwd: '/nowhere' }));
  assert.doesNotMatch(JSON.stringify({ settings, withheld }), /hush/);
  assert.deepEqual(
    [settings['signing.tsa_url'], settings['telemetry.otlp_endpoint'], settings['signing.private_key_path']],
    [['https://tsa.example/stamp'], 'https://otlp.example/v1/traces', '/keys/key.pem'],
  );
  assert.deepEqual(withheld, [
    'auth.tokens',
    'jobs.database_url',
    'signing.private_key_passphrase',
    'callbacks.secret',
  ]);
});

test('identities are shown by their names, without passphrases', async () => {
  const news = 'SERVICE__SIGNING__IDENTITIES__NEWS';
  const env = {
    [`${news}__CERTIFICATE_PATH`]: '/keys/news.pem',
    [`${news}__SIGNER__TYPE`]: 'pem',
    [`${news}__SIGNER__PRIVATE_KEY_PATH`]: '/keys/news.key',
    [`${news}__SIGNER__PRIVATE_KEY_PASSPHRASE`]: 'hush',
    [`${news}__TSA_URL`]: 'https://hush:hush@one.example,https://two.example',
  };
  const { settings, withheld } = shownConfig(await loadConfig({ env, cwd: '/nowhere' }));
  assert.doesNotMatch(JSON.stringify({ settings, withheld }), /hush/);
  assert.deepEqual(
    [settings['signing.identities.news.signer.type'], settings['signing.identities.news.tsa_url']],
    ['pem', ['https://one.example/', 'https://two.example/']],
  );
  assert.deepEqual(withheld, ['signing.identities.news.signer.private_key_passphrase']);
});

test('what is shown of an address has no password, however it is written', async () => {
  for (const url of [
    'https:hush:hush@tsa.example/a',
    ' https://hush:hush@tsa.example/a',
    'https:\\\\hush:hush@tsa.example/a',
  ]) {
    const env = { SERVICE__TELEMETRY__OTLP_ENDPOINT: url, SERVICE__SIGNING__TSA_URL: url };
    const { settings } = shownConfig(await loadConfig({ env, cwd: '/nowhere' }));
    assert.deepEqual(settings['telemetry.otlp_endpoint'], 'https://tsa.example/a');
    assert.deepEqual(settings['signing.tsa_url'], ['https://tsa.example/a']);
  }
});

test('every default of the configuration is shown or withheld on purpose', async () => {
  const config = await loadConfig({ env: {}, cwd: '/nowhere' });
  const { settings } = shownConfig(config);
  const leaves = (table: object, prefix = ''): string[] =>
    Object.entries(table).flatMap(([name, value]) =>
      typeof value === 'object' && !Array.isArray(value) ? leaves(value, `${prefix}${name}.`) : [prefix + name],
    );
  const missing = leaves(config).filter((key) => !(key in settings));
  assert.deepEqual(missing, ['auth.tokens', 'signing.actions']);
});
