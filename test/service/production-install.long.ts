import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startService } from '../../scripts/running-service.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const folder = temporaryFolder();

describe('an installation without development packages', () => {
  before(() => linkProductionPackages(folder));

  test('runs a clone', async () => {
    const clone = join(folder, 'clone');
    for (const name of ['src', 'console', 'docs', 'package.json']) copyFromRoot(name, clone);
    await assertSignsAndServes(join(clone, 'src/main.ts'));
  });

  test('runs what "npm run build" writes', async () => {
    const built = join(folder, 'built');
    execFileSync(process.execPath, [join(ROOT, 'scripts/build.ts'), built]);
    assert.deepEqual(
      readdirSync(join(built, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts')),
      [],
    );
    await assertSignsAndServes(join(built, 'src/main.js'));
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

/** Has a service sign a file, and load each file of the console. */
async function assertSignsAndServes(program: string): Promise<void> {
  const home = join(dirname(program), '../home');
  await using service = await startService({ folder: home, program });
  const path = join(home, 'tone.wav');
  writeFileSync(path, smallWav());
  const { status } = await service.runSync('/v2/sync/c2pa/audio', { inputs: [{ type: 'local_file_path', path }] });
  assert.equal(status, 'succeeded');
  const page = await (await fetch(service.base, { headers: { accept: 'text/html' } })).text();
  const [, importMap = ''] = /<script type="importmap">([\s\S]*?)<\/script>/.exec(page) ?? [];
  const addresses = Object.values<string>(JSON.parse(importMap).imports);
  for (const address of [...addresses, 'console/vendor/hls.js', 'console/vendor/c2pa_bg.wasm']) {
    const reply = await fetch(new URL(address, `${service.base}/`));
    assert.equal(reply.status, 200, address);
    await reply.arrayBuffer();
  }
}
