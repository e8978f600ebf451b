import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertSignsAndServes } from '../support/servers/sign-and-serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const folder = temporaryFolder();

describe('an installation without development packages', () => {
  before(() => linkProductionPackages(folder));

  test('runs a clone', async () => {
    const clone = join(folder, 'clone');
    for (const name of ['src', 'console', 'docs', 'package.json']) copyFromRoot(name, clone);
    await assertSignsAndServes([join(clone, 'src/main.ts')], join(clone, 'home'));
  });

  test('runs what "npm run build" writes', async () => {
    const built = join(folder, 'built');
    execFileSync(process.execPath, [join(ROOT, 'scripts/build.ts'), built]);
    assert.deepEqual(
      readdirSync(join(built, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts')),
      [],
    );
    await assertSignsAndServes([join(built, 'src/main.js')], join(built, 'home'));
  });
});

/** Links what `npm ci --omit=dev` installs below a folder: packages outside of others, which hold the rest. */
function linkProductionPackages(target: string): void {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  for (const [path, { dev = false }] of Object.entries<{ dev?: boolean }>(lock.packages)) {
    if (dev || !/^node_modules\/(?:@[^/]+\/)?[^/]+$/.test(path)) continue;
    mkdirSync(dirname(join(target, path)), { recursive: true });
    symlinkSync(join(ROOT, path), join(target, path));
  }
}

function copyFromRoot(name: string, target: string): void {
  cpSync(join(ROOT, name), join(target, name), { recursive: true });
}
