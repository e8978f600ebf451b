import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '#config/load-config.ts';
import { protectedPaths, recordsDirOf, secretPaths, withoutSecrets } from '#config/protected-paths.ts';

const identity = {
  SERVICE__SIGNING__CERTIFICATE_PATH: 'keys/chain.pem',
  SERVICE__SIGNING__PRIVATE_KEY_PATH: 'keys/key.pem',
};

test('the places of the service are its data, what it works on, its keys and its configuration', async () => {
  const config = await loadConfig({ env: { ...identity, SERVICE__JOBS__SCRATCH_DIR: '/fast' }, cwd: '/srv' });
  assert.equal(recordsDirOf(config), '/srv/.artifacts/data');
  assert.deepEqual([...new Set(protectedPaths(config, '/etc/attestream/service.toml'))].sort(), [
    '/etc/attestream/service.toml',
    '/fast',
    '/srv/.artifacts/data',
    '/srv/keys/chain.pem',
    '/srv/keys/key.pem',
  ]);
});

test('the notes that nodes share lie with the outputs, and are a place of the service', async () => {
  const env = { ...identity, SERVICE__JOBS__DATABASE_URL: 'postgres://db.example.com/attestream' };
  const config = await loadConfig({ env, cwd: '/srv' });
  assert.equal(recordsDirOf(config), '/srv/.artifacts/output/.attestream');
  assert.ok(protectedPaths(config, '/srv/config/service.toml').includes(recordsDirOf(config)));
});

test('every file of every identity is hidden, and protected also by those who do not know what it is for', async () => {
  const news = 'SERVICE__SIGNING__IDENTITIES__NEWS';
  const env = {
    [`${news}__CERTIFICATE_PATH`]: 'news.pem',
    [`${news}__SIGNER__TYPE`]: 'pkcs11',
    [`${news}__SIGNER__MODULE`]: '/usr/lib/vendor.so',
    [`${news}__SIGNER__TOKEN`]: 'hush-token',
    [`${news}__SIGNER__KEY`]: 'hush-key',
    [`${news}__SIGNER__PIN_PATH`]: 'pin',
    [`${news}__PUBLISHER__CERTIFICATE_PATH`]: 'publisher.pem',
    [`${news}__PUBLISHER__SIGNER__TYPE`]: 'http',
    [`${news}__PUBLISHER__SIGNER__KEY`]: 'hush-key',
    [`${news}__PUBLISHER__SIGNER__SOCKET_PATH`]: 'bridge.sock',
    [`${news}__PUBLISHER__SIGNER__TOKEN_PATH`]: 'token',
    [`${news}__PUBLISHER__SIGNER__CLIENT_CERTIFICATE_PATH`]: 'client.pem',
    [`${news}__PUBLISHER__SIGNER__CLIENT_KEY_PATH`]: 'client.key',
  };
  const files = ['news.pem', 'pin', 'publisher.pem', 'bridge.sock', 'token', 'client.pem', 'client.key'];
  const config = await loadConfig({ env, cwd: '/srv' });
  const ofWorkers = withoutSecrets(config);
  for (const path of [...files.map((name) => `/srv/${name}`), '/usr/lib/vendor.so']) {
    assert(secretPaths(config, '/srv/service.toml').includes(path), path);
    assert(protectedPaths(config, '/srv/service.toml').includes(path), path);
    assert(protectedPaths(ofWorkers, '/srv/service.toml').includes(path), path);
  }
  assert.doesNotMatch(JSON.stringify(ofWorkers), /hush|pkcs11/);
});
