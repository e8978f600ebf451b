import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { mountArguments } from '#processes/launcher.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The folder of package.json, without a slash at its end. */
const REPOSITORY = dirname(fileURLToPath(new URL('../../package.json', import.meta.url)));

test('a sandbox whose writable folder lies around the code of the service cannot write that code', () => {
  const mounts = mountArguments({ writable: [dirname(REPOSITORY)], readable: [], hidden: [] }, {});
  const code = mounts.indexOf(REPOSITORY);
  assert.equal(mounts[code - 1], '--ro-bind');
  assert(code > mounts.indexOf(dirname(REPOSITORY)), 'the deeper mount comes later');
});

test('a sandbox hides the whole folder of secrets whose links may be swapped, as Kubernetes mounts them, unless it holds more', () => {
  const folder = temporaryFolder();
  const hidden = ['chain.pem', 'key.pem'].map((name) => join(folder, name));
  mkdirSync(join(folder, '..first'));
  for (const name of ['chain.pem', 'key.pem']) {
    writeFileSync(join(folder, '..first', name), '');
    symlinkSync(join('..data', name), join(folder, name));
  }
  symlinkSync('..first', join(folder, '..data'));
  const isHidden = () => {
    const mounts = mountArguments({ writable: [], readable: [], hidden }, {});
    return mounts[mounts.indexOf(folder) - 1] === '--tmpfs';
  };
  assert(isHidden());
  writeFileSync(join(folder, 'other'), '');
  assert(!isHidden());
});
