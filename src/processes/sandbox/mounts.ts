import { readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The paths of a sandbox, absolute. Links are resolved here, and missing paths are ignored. */
export interface SandboxPaths {
  /** Folders that the process may write. Everything else is read-only. */
  readonly writable: readonly string[];
  /** Folders that stay readable inside hidden folders. */
  readonly readable: readonly string[];
  /** Files and folders that the process must not see: the signing key and the configuration. */
  readonly hidden: readonly string[];
}

/** A path, and its kind of mount. */
interface Mount {
  readonly path: string;
  readonly as: 'writable' | 'read-only' | 'hidden';
}

/**
 * The folder of the system's sockets: a process that reaches a container engine, systemd or a session bus can run programs
 * outside of the sandbox.
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

/** Variables that name files which the process reads, such as the token of a web identity. Their folders are mounted, because such files are replaced by renaming. */
const FILE_VARIABLES = [
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
  'AWS_SHARED_CREDENTIALS_FILE',
  'AWS_CONFIG_FILE',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
];

/** The service's code, three folders above this one. A process that could write it could change the next process. */
const CODE_FOLDER = fileURLToPath(new URL('../../..', import.meta.url));

/**
 * Returns the arguments of bwrap(1) that make the host's files read-only, some folders writable, and hide some paths. Deeper
 * paths are mounted later, so that each takes precedence over the folders around it.
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

/** Tells whether a path is hidden, which the nearest mount around it decides. */
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
 * Hides whole folders that hold only hidden files. The mount over a single file is lost when the file is replaced by
 * renaming.
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
    // It cannot be listed, so it may hold other files.
    return [''];
  }
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // A missing path can neither be mounted nor be read.
    return undefined;
  }
}

function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

function depthOf(path: string): number {
  return path.split(sep).filter((name) => name !== '').length;
}
