import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type OwnAddress, ownAddress } from '../../../scripts/own-address.ts';

/** A generous bound: it is passed only where a server hangs. */
const START_TIMEOUT_MS = 600_000;
const LOOK_INTERVAL_MS = 20;

/** A server of the test's own: one process on loopback, with its own configuration and folder for what it writes. */
export interface FileServer {
  /** `http://<host>:<port>`. */
  readonly base: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts a server. `configure` writes its configuration into the folder, and returns the program's arguments. */
export async function startProgram(
  program: string,
  configure: (folder: string, address: OwnAddress) => readonly string[],
): Promise<FileServer> {
  const folder = mkdtempSync(join(tmpdir(), `attestream-${program}-`));
  const address = ownAddress();
  const parameters = configure(folder, address);
  const path = existsSync(`/usr/sbin/${program}`) ? `/usr/sbin/${program}` : program;
  const outputPath = join(folder, 'output.txt');
  const output = openSync(outputPath, 'a');
  const child = spawn(path, parameters, {
    stdio: ['ignore', output, output],
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  });
  const ended = once(child, 'exit');
  closeSync(output);
  if (!(await listens(child, address)))
    throw new Error(`${program} does not start:\n${readFileSync(outputPath, 'utf8')}`);
  return {
    base: `http://${address.host}:${address.port}`,
    pid: child.pid as number,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Servers that list their directories, each in its own way, by what they are called; started over a folder. */
export const LISTING_SERVERS: Readonly<Record<string, (root: string) => Promise<FileServer>>> = {
  'Apache, without sizes,': (root) => startApache(root, ''),
  'Apache, with sizes,': (root) => startApache(root, 'FancyIndexing'),
  'Apache, as Debian sets it up,': (root) =>
    startApache(root, 'FancyIndexing HTMLTable VersionSort NameWidth=* DescriptionWidth=* Charset=UTF-8'),
  lighttpd: (root) =>
    startProgram('lighttpd', (folder, { host, port }) => {
      const path = join(folder, 'lighttpd.conf');
      writeFileSync(
        path,
        `server.document-root = "${root}"
server.bind = "${host}"
server.port = ${port}
server.modules = ("mod_dirlisting")
dir-listing.activate = "enable"
`,
      );
      return ['-D', '-f', path];
    }),
  Caddy: (root) =>
    startProgram('caddy', (_folder, { host, port }) => {
      return ['file-server', '--root', root, '--listen', `${host}:${port}`, '--browse'];
    }),
  'Python’s http.server': (root) =>
    startProgram('python3', (_folder, { host, port }) => {
      return ['-m', 'http.server', String(port), '--bind', host, '--directory', root];
    }),
};

function startApache(root: string, indexOptions: string): Promise<FileServer> {
  return startProgram('apache2', (folder, { host, port }) => {
    const modules = ['mpm_event', 'authz_core', 'dir', 'mime', 'autoindex'];
    const path = join(folder, 'apache.conf');
    writeFileSync(
      path,
      `ServerRoot ${folder}
PidFile ${folder}/apache.pid
ErrorLog ${folder}/output.txt
ServerName localhost
Listen ${host}:${port}
${modules.map((name) => `LoadModule ${name}_module ${APACHE_MODULES}/mod_${name}.so`).join('\n')}
TypesConfig /dev/null
DocumentRoot ${root}
<Directory ${root}>
Options +Indexes
${indexOptions === '' ? '' : `IndexOptions ${indexOptions}`}
Require all granted
</Directory>
`,
    );
    return ['-f', path, '-X'];
  });
}

const APACHE_MODULES = '/usr/lib/apache2/modules';

/** Resolves with true as soon as a server listens, with false when it never will. */
async function listens(child: ChildProcess, address: OwnAddress): Promise<boolean> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (child.exitCode === null && child.signalCode === null && Date.now() < deadline) {
    if (await isListening(address)) return true;
    await sleep(LOOK_INTERVAL_MS);
  }
  return false;
}

function isListening(address: OwnAddress): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(address);
  socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
}
