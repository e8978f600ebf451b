import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { problemOfFolder, requirePrivate } from '#service-folders.ts';
import { createLogger } from '#telemetry/logger.ts';
import { startService } from '../../scripts/running-service.ts';
import { HANG_MS, until } from '../support/jobs/test-jobs.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { fillDisk, openSmallDisk } from '../support/small-disk.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { withoutPrivileges } from '../support/without-privileges.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

function standingFolder(): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'file'), '');
  symlinkSync(join(folder, 'nowhere'), join(folder, 'link'));
  return folder;
}

describe('a folder that the service is to write to', () => {
  test('is made with those above it, and left empty', async () => {
    const folder = join(temporaryFolder(), 'a', 'b', 'c');
    assert.equal(problemOfFolder(folder, 0o700), null);
    assert.equal(problemOfFolder(folder, 0o700), null);
    assert.deepEqual(readdirSync(folder), []);
  });

  test('may be on a full disk, which may have room again', async (t) => {
    const disk = await openSmallDisk(1024 * 1024);
    t.after(() => disk.cleanUp());
    await fillDisk(disk.path);
    assert.equal(problemOfFolder(disk.path, 0o700), null);
  });

  for (const place of ['file', 'file/below', 'link', 'link/below']) {
    test(`cannot be ${place.replace('/', ' with something ')}`, async () => {
      assert.notEqual(problemOfFolder(join(standingFolder(), place), 0o700), null);
    });
  }

  for (const place of ['/proc', '/proc/none', '/proc/none/below']) {
    test(`cannot be ${place}`, () => assert.notEqual(problemOfFolder(place, 0o700), null));
  }

  test('cannot be one that another user owns', async () => {
    await withoutPrivileges(async () => assert.notEqual(problemOfFolder('/usr/attestream', 0o700), null));
  });
});

interface LogLine {
  readonly level: string;
  readonly reason: string;
  readonly msg: string;
}

/** Starts the service with some keys set, and returns the line that says why it does not. */
function refusedStart(cwd: string, keys: Record<string, string>): LogLine {
  // A fatal line may overtake one that was written just before it.
  const fatal = linesOfStart(cwd, keys).find(({ level }) => level === 'fatal');
  assert(fatal !== undefined);
  return fatal;
}

/** Starts the service with some keys set with which it does not start, and returns what it logs. */
function linesOfStart(cwd: string, keys: Record<string, string>): LogLine[] {
  const env = { ...process.env, SERVICE__SERVER__BIND_ADDR: '127.0.0.1:0' };
  const variables = Object.entries(keys).map(([key, value]) => [
    `SERVICE__${key.toUpperCase().replaceAll('.', '__')}`,
    value,
  ]);
  const options = { cwd, env: { ...env, ...Object.fromEntries(variables) }, timeout: HANG_MS };
  const { status, stdout } = spawnSync(process.execPath, [MAIN], options);
  assert.equal(status, 1);
  return String(stdout)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

describe('a data folder that others may enter', () => {
  test('is closed to them at the start, which says so', () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    const lines = linesOfStart(folder, { 'jobs.data_dir': folder, 'output_sinks.local.base_dir': '/proc/none' });
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    const told = lines.filter(({ level, msg }) => level === 'warn' && msg.includes('jobs.data_dir'));
    assert.equal(told.length, 1);
  });

  test('is refused where another user owns it', async () => {
    await withoutPrivileges(async () => {
      assert.throws(() => requirePrivate('jobs.data_dir', '/usr', createLogger({})), { reason: 'FOLDER_UNUSABLE' });
    });
  });
});

describe('a service whose folder cannot be written', () => {
  for (const key of ['jobs.data_dir', 'jobs.scratch_dir', 'output_sinks.local.base_dir']) {
    test(`does not start, and names ${key}`, async () => {
      const { reason, msg } = refusedStart(temporaryFolder(), { [key]: '/proc/none' });
      assert.equal(reason, 'FOLDER_UNUSABLE');
      assert.ok(msg.includes(key), msg);
    });
  }
});

test('outputs are written again once their folder can be made, whenever it could not', async (t) => {
  const folder = temporaryFolder();
  const disk = join(folder, 'disk');
  const source = join(folder, 'tone.wav');
  writeFileSync(source, smallWav());
  const settings = { SERVICE__OUTPUT_SINKS__LOCAL__BASE_DIR: join(disk, 'outputs') };
  const service = await startService({ folder, settings });
  t.after(() => service.stop());
  const submit = () => service.submit('/v2/c2pa/audio', { inputs: [{ type: 'local_file_path', path: source }] });
  assert.equal((await service.waitFor(await submit())).status, 'succeeded');
  rmSync(disk, { recursive: true });
  writeFileSync(disk, 'not mounted');
  const waiting = await submit();
  await until(async () => (await service.lookUp(waiting)).waiting_for?.[0]?.dependency === 'output_folder');
  rmSync(disk);
  assert.equal((await service.waitFor(waiting)).status, 'succeeded');
});

describe('a service whose outputs would lie in a place of its own', () => {
  for (const [what, place] of [
    ['the same folder', 'own'],
    ['inside it', 'own/outputs'],
    ['inside it by a link', 'link/outputs'],
  ] as const) {
    test(`does not start: ${what}`, async () => {
      const folder = temporaryFolder();
      symlinkSync(join(folder, 'own'), join(folder, 'link'));
      const { reason, msg } = refusedStart(folder, {
        'jobs.data_dir': join(folder, 'own'),
        'output_sinks.local.base_dir': join(folder, place),
      });
      assert.equal(reason, 'FOLDER_UNUSABLE');
      assert.ok(msg.includes('output_sinks.local.base_dir') && msg.includes('jobs.data_dir'), msg);
    });
  }
});
