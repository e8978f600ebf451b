import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import { databaseFileOf, secretPaths } from '#config/protected-paths.ts';
import { exitOf, Launcher, type LaunchOptions } from '#processes/launcher.ts';
import { probeProtections } from '#processes/protections.ts';
import { isRunning } from '../support/processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { Intrusion } from './intruder.ts';

const INTRUDER = new URL('./intruder.ts', import.meta.url);

/** A folder with a key and its configuration beside media, and one with a key alone. */
function places() {
  const folder = temporaryFolder();
  for (const name of ['media', 'identity', 'output']) mkdirSync(join(folder, name));
  const inFolder = (name: string) => join(folder, name);
  const files = ['media/film.mp4', 'media/key.pem', 'identity/key.pem'].map(inFolder) as [string, string, string];
  for (const file of files) writeFileSync(file, 'contents');
  const [film, keyBesideMedia, keyAlone] = files;
  return { film, keyBesideMedia, keyAlone, output: inFolder('output'), identity: inFolder('identity'), folder };
}

async function intruder(t: TestContext, launcher: Launcher, options: Partial<LaunchOptions> = {}) {
  const child = launcher.launch(INTRUDER, { execArgv: [], detached: true, ...options });
  t.after(() => end(child));
  return {
    child,
    attempt: async (intrusion: Intrusion): Promise<unknown> => {
      child.send(intrusion);
      const [result] = await once(child, 'message');
      return result;
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** An address in the memory of this process that its own `mem` file can be read at. */
function mappedAddress(): number {
  return Number.parseInt(readFileSync('/proc/self/maps', 'latin1').split('-')[0] ?? '', 16);
}

const memoryOfThis = (): Intrusion => ({ kind: 'memory', pid: process.pid, address: mappedAddress() });

describe('a process that was taken over, in the sandbox', () => {
  test('reads media, and neither the key, this process nor what it could change', async (t) => {
    const { film, keyBesideMedia, keyAlone, output, identity, folder } = places();
    const protections = await probeProtections('require');
    assert.deepEqual(protections.missing, []);
    const launcher = new Launcher({ protections, hidden: [keyBesideMedia, keyAlone] });
    const { attempt } = await intruder(t, launcher, { writable: [output] });

    assert.equal(await attempt({ kind: 'read', path: film }), null);
    assert.equal(await attempt({ kind: 'write', path: join(output, 'film.mp4') }), null);
    assert.equal(readFileSync(join(output, 'film.mp4'), 'utf8'), 'written');
    assert.equal(await attempt({ kind: 'read', path: '/proc/self/status' }), null);

    assert.equal(await attempt({ kind: 'read', path: keyBesideMedia }), 'EACCES');
    assert.equal(await attempt({ kind: 'read', path: keyAlone }), 'ENOENT');
    assert.notEqual(await attempt({ kind: 'unmount', path: keyBesideMedia }), null);
    assert.notEqual(await attempt({ kind: 'rename', path: identity, to: join(output, 'taken') }), null);
    assert.notEqual(await attempt({ kind: 'read', path: `/proc/${process.pid}/environ` }), null);
    assert.notEqual(await attempt(memoryOfThis()), null);
    for (const path of [film, join(folder, 'new'), '/etc/attestream-test', import.meta.filename])
      assert.notEqual(await attempt({ kind: 'write', path }), null);
    // The text is no number: a writable setting would refuse it with EINVAL.
    assert.equal(await attempt({ kind: 'write', path: '/proc/sys/vm/drop_caches' }), 'EROFS');
  });

  test('does not see a key that replaces the one in a folder of its own', async (t) => {
    const { keyAlone, output } = places();
    const launcher = new Launcher({ protections: await probeProtections('require'), hidden: [keyAlone] });
    const { attempt } = await intruder(t, launcher, { writable: [output] });
    await attempt({ kind: 'variables' });
    writeFileSync(`${keyAlone}.new`, 'another key');
    renameSync(`${keyAlone}.new`, keyAlone);
    assert.equal(await attempt({ kind: 'read', path: keyAlone }), 'ENOENT');
  });

  test('reads the credentials of AWS only where it is given their variables', async (t) => {
    const { folder, output } = places();
    mkdirSync(join(folder, '.aws'));
    const [shared, token] = [join(folder, '.aws/credentials'), join(folder, 'media/token')] as const;
    for (const file of [shared, token]) writeFileSync(file, 'secret');
    for (const [name, value] of Object.entries({ HOME: folder, AWS_WEB_IDENTITY_TOKEN_FILE: token })) {
      const before = process.env[name];
      process.env[name] = value;
      t.after(() => {
        delete process.env[name];
        if (before !== undefined) process.env[name] = before;
      });
    }
    const launcher = new Launcher({ protections: await probeProtections('require') });
    for (const aws of [true, false]) {
      const { attempt } = await intruder(t, launcher, { writable: [output], aws });
      for (const path of [shared, token]) assert.equal((await attempt({ kind: 'read', path })) === null, aws, path);
    }
  });

  test('neither reads nor changes the job store, in a data folder that it writes', async (t) => {
    const { output } = places();
    const config = configSchema.parse({ jobs: { data_dir: output } });
    const store = databaseFileOf(output);
    for (const file of [store, `${store}-wal`]) writeFileSync(file, 'contents');
    const jobs = { ...config.jobs, scratch_dir: join(output, 'scratch') };
    const hidden = secretPaths({ ...config, jobs } as Config, '/etc/attestream/none.toml');
    const launcher = new Launcher({ protections: await probeProtections('require'), hidden });
    const { attempt } = await intruder(t, launcher, { writable: [output] });
    for (const path of [store, `${store}-wal`]) {
      assert.notEqual(await attempt({ kind: 'read', path }), null);
      assert.notEqual(await attempt({ kind: 'write', path }), null);
      assert.notEqual(await attempt({ kind: 'rename', path, to: join(output, 'moved') }), null);
      assert.equal(readFileSync(path, 'utf8'), 'contents');
    }
    assert.equal(await attempt({ kind: 'write', path: join(output, 'note') }), null);
  });

  test('is made without a folder that hangs, and with it once that answers', async (t) => {
    const { output } = places();
    const launcher = new Launcher({ protections: await probeProtections('require') });
    const writes = async () => {
      const { attempt } = await intruder(t, launcher, { writable: [output] });
      return await attempt({ kind: 'write', path: join(output, 'film.mp4') });
    };
    assert.equal(await writes(), null);
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    const { realpath } = fs;
    const mocked = t.mock.method(fs, 'realpath', async (path: string) => {
      await answered;
      return await realpath(path);
    });
    syncBuiltinESMExports();
    await launcher.lookAtFolders();
    assert.equal(launcher.folderLeftOut, output);
    assert.equal(await writes(), 'EROFS');
    answer();
    await launcher.lookAtFolders();
    assert.equal(launcher.folderLeftOut, null);
    assert.equal(await writes(), null);
    mocked.mock.restore();
    syncBuiltinESMExports();
  });

  test('ends with all that it started when its process group is killed, and says by which signal', async (t) => {
    const { output } = places();
    const launcher = new Launcher({ protections: await probeProtections('require') });
    const { child, attempt } = await intruder(t, launcher, { writable: [output] });
    await attempt({ kind: 'variables' });
    assert(child.pid !== undefined);
    const [inner] = childrenOf(childrenOf(child.pid)[0] ?? 0);
    assert(inner !== undefined);
    const exit = once(child, 'exit');
    process.kill(inner, 'SIGSEGV');
    const [code, signal] = await exit;
    assert.deepEqual(exitOf(code, signal), { code: null, signal: 'SIGSEGV' });
    assert(!isRunning(inner));
  });
});

describe('a process that was taken over, without a sandbox', () => {
  test('still reads no memory and no environment of a service that is run by root', async (t) => {
    if (process.getuid?.() !== 0) return;
    const { output } = places();
    const launcher = new Launcher({ protections: await probeProtections('off') });
    const { attempt } = await intruder(t, launcher, { writable: [output] });
    assert.equal(await attempt({ kind: 'read', path: `/proc/${process.pid}/environ` }), 'EACCES');
    assert.equal(await attempt(memoryOfThis()), 'EACCES');
  });
});

describe('a child process of the service', () => {
  test('gets no variable but those of the allow-list, and those of AWS only for S3', async (t) => {
    for (const name of ['SERVICE__AUTH__TOKENS', 'AWS_SECRET_ACCESS_KEY', 'SOME_SECRET']) {
      process.env[name] = 'secret';
      t.after(() => delete process.env[name]);
    }
    const launcher = new Launcher();
    for (const { aws, expected } of [
      { aws: false, expected: [] },
      { aws: true, expected: ['AWS_SECRET_ACCESS_KEY'] },
    ]) {
      const { attempt } = await intruder(t, launcher, { aws });
      const names = (await attempt({ kind: 'variables' })) as string[];
      assert.deepEqual(
        names.filter((name) => /SECRET|SERVICE/.test(name)),
        expected,
      );
    }
  });

  test('cannot dump core, and is limited in open files and memory', async (t) => {
    const launcher = new Launcher({ protections: await probeProtections('off') });
    const { child, attempt } = await intruder(t, launcher, { limits: { openFiles: 500, dataBytes: 3 * 1024 ** 3 } });
    await attempt({ kind: 'variables' });
    const limits = readFileSync(`/proc/${child.pid}/limits`, 'latin1');
    assert.match(limits, /^Max core file size +[01] +[01] /m);
    assert.match(limits, /^Max open files +500 +500 /m);
    assert.match(limits, /^Max data size +3221225472 +3221225472 /m);
  });
});

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
}
