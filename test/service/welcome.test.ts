import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { loadConfig } from '#config/load-config.ts';
import { welcome } from '#service.ts';

for (const [address, family, base] of [
  ['0.0.0.0', 'IPv4', 'http://localhost:8080'],
  ['::', 'IPv6', 'http://localhost:8080'],
  ['::1', 'IPv6', 'http://[::1]:8080'],
  ['192.0.2.7', 'IPv4', 'http://192.0.2.7:8080'],
] as const) {
  test(`a service on ${address} says where its console, reference and outputs are`, async () => {
    const config = await loadConfig({ env: {}, cwd: '/nowhere' });
    const text = stripVTControlCharacters(welcome(config, { address, family, port: 8080 }));
    const values = text.split('\n').map((line) => line.trim().split(/ {2,}/));
    assert.deepEqual(values.slice(1, 4), [
      ['Console', `${base}/`],
      ['API reference', `${base}/docs`],
      ['Outputs', '/nowhere/.artifacts/output'],
    ]);
  });
}
