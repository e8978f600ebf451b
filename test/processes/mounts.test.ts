import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { mountArguments } from '#processes/launcher.ts';

/** The folder of package.json, without a slash at its end. */
const REPOSITORY = dirname(fileURLToPath(new URL('../../package.json', import.meta.url)));

test('a sandbox whose writable folder lies around the code of the service cannot write that code', () => {
  const mounts = mountArguments({ writable: [dirname(REPOSITORY)], readable: [], hidden: [] }, {});
  const code = mounts.indexOf(REPOSITORY);
  assert.equal(mounts[code - 1], '--ro-bind');
  assert(code > mounts.indexOf(dirname(REPOSITORY)), 'the deeper mount comes later');
});
