import { readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The paths that a sandbox is made of. Absolute; links are resolved here, and what is missing is left out. */
export interface SandboxPaths {
  /** Folders that the process may write. Everything else is read-only. */
  readonly writable: readonly string[];
  /** Folders that must stay readable although they lie in a place that is hidden as a whole. */
  readonly readable: readonly string[];
  /** Files and folders that the process must not see: the signing key and the configuration. */
  readonly hidden: readonly string[];
}

/** Where a path is mounted, and as what. */
interface Mount {
  readonly path: string;
  readonly as: 'writable' | 'read-only' | 'hidden';
}

/**
 * Sockets of the system's services: who may speak to a container engine, to systemd or to a session bus can have programs
 * run outside of the sandbox.
 */
const SOCKET_FOLDER = '/run';

/** Parts of the socket folder that name resolution and some distributions need. */
const NEEDED_SOCKET_FOLDERS = [
  '/run/systemd/resolve',
  '/run/resolvconf',
  '/run/NetworkManager',
  '/run/nscd',
  '/run/current-system',
];

/** Variables that name files which the process reads, such as the token of a web identity. Its folder is mounted, since it is replaced in it. */
const FILE_VARIABLES = [
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
  'AWS_SHARED_CREDENTIALS_FILE',
  'AWS_CONFIG_FILE',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
];

/** The service's code: two folders above this one. What may write it may have itself run by the next process. */
const CODE_FOLDER = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Returns the arguments of bwrap(1) that show a process the host's files read-only, some folders writable, and some paths
 * not at all. Deeper paths are mounted later, so that each wins over those that it lies in.
 */
export function mountArguments(paths: SandboxPaths, environment: NodeJS.ProcessEnv): string[] {
  const hidden = [SOCKET_FOLDER, ...withSecretFolders(paths)];
  const named = FILE_VARIABLES.flatMap((name) => environment[name] ?? []).map(dirname);
  const own: Mount[] = mountsOf([CODE_FOLDER, dirname(process.execPath)], 'read-only');
  const kept: Mount[] = mountsOf([...NEEDED_SOCKET_FOLDERS, ...named, ...paths.readable], 'read-only');
  const given = [...mountsOf(paths.writable, 'writable'), ...mountsOf(hidden, 'hidden')];
  const mounts = new Map([
    ...kept.filter(({ path }) => isInHidden(path, given)).map(byPath),
    ...own.filter(({ path }) => given.some((mount) => isBelow(path, mount.path))).map(byPath),
    ...given.map(byPath),
  ]);
  return [...mounts.values()].sort((a, b) => depthOf(a.path) - depthOf(b.path)).flatMap(argumentsOf);
}

/** The nearest mount around a path that may be seen decides, not one further up. */
function isInHidden(path: string, mounts: readonly Mount[]): boolean {
  const around = mounts.filter((mount) => isBelow(path, mount.path));
  return around.sort((a, b) => depthOf(b.path) - depthOf(a.path))[0]?.as === 'hidden';
}

function mountsOf(paths: readonly string[], as: Mount['as']): Mount[] {
  return paths.flatMap((path) => realPathOf(path) ?? []).map((path) => ({ path, as }));
}

function byPath(mount: Mount): [string, Mount] {
  return [mount.path, mount];
}

function argumentsOf({ path, as }: Mount): string[] {
  if (as === 'writable') return ['--bind', path, path];
  if (as === 'read-only') return ['--ro-bind', path, path];
  return statSync(path).isDirectory() ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path];
}

/**
 * Adds the folders that hold nothing but hidden files. A file that is hidden alone shows again when it is replaced by
 * renaming, which takes its mount away.
 */
function withSecretFolders({ hidden, writable, readable }: SandboxPaths): string[] {
  const secret = new Set(hidden.flatMap((path) => realPathOf(path) ?? []));
  const needed = [...writable, ...readable, CODE_FOLDER, process.execPath].flatMap((path) => realPathOf(path) ?? []);
  const folders = [...secret].map(dirname).filter((folder) => {
    const holdsMore = namesIn(folder).some((name) => !secret.has(join(folder, name)));
    return !holdsMore && !needed.some((path) => path === folder || isBelow(path, folder));
  });
  const files = [...secret].filter((path) => !folders.some((folder) => isBelow(path, folder)));
  return [...files, ...folders];
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // It cannot be listed, so nobody can say that it holds nothing else.
    return [''];
  }
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // What is not there can neither be mounted nor be read.
    return undefined;
  }
}

function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

function depthOf(path: string): number {
  return path.split(sep).filter((name) => name !== '').length;
}
