import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Packs a version of the package "node", the only one that the set-up itself names. */
function packageOf(version: string): Buffer {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'package'));
  writeFileSync(join(folder, 'package/package.json'), JSON.stringify({ name: 'node', version }));
  return execFileSync('tar', ['-cz', '-C', folder, 'package']);
}

test('a set-up that cannot download leaves the packages of the release before in place', async (t) => {
  let isAway = false;
  const registry = createServer(({ url = '' }, response) => {
    if (isAway) response.writeHead(503).end();
    else response.end(packageOf(url.slice(1)));
  }).listen(0, '127.0.0.1');
  await once(registry, 'listening');
  t.after(() => registry.close());
  const base = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`;

  const clone = temporaryFolder();
  for (const name of ['scripts/setup.mjs', '.npmrc']) cpSync(join(ROOT, name), join(clone, name));
  const checkOut = (version: string) => {
    const manifest = { name: 'clone', version, dependencies: { node: version } };
    const packages = { '': manifest, 'node_modules/node': { version, resolved: `${base}/${version}` } };
    writeFileSync(join(clone, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(clone, 'package-lock.json'), JSON.stringify({ ...manifest, lockfileVersion: 3, packages }));
  };
  const env = { PATH: process.env['PATH'], HOME: temporaryFolder(), npm_config_fetch_retries: '0' };
  const setUp = () => promisify(execFile)(process.execPath, [join(clone, 'scripts/setup.mjs')], { env });
  const installed = () => JSON.parse(readFileSync(join(clone, 'node_modules/node/package.json'), 'utf8')).version;

  checkOut('1.0.0');
  await setUp();
  const entries = readdirSync(clone);
  checkOut('2.0.0');
  isAway = true;
  await assert.rejects(setUp(), /503/);
  assert.equal(installed(), '1.0.0');
  assert.deepEqual(readdirSync(clone), entries);
  isAway = false;
  await setUp();
  assert.equal(installed(), '2.0.0');
  assert.deepEqual(readdirSync(clone), entries);
});
