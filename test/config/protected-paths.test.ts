import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '#config/load-config.ts';
import { protectedPaths, recordsDirOf } from '#config/protected-paths.ts';

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
