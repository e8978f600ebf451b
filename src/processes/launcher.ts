import { type ChildProcess, execFile, type SerializationType, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { getCompileCacheDir } from 'node:module';
import { constants, homedir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { raceTimeout } from '#concurrency/race-abort.ts';
import { findProgram } from './find-program.ts';
import {
  coreLimit,
  limitPrefix,
  MEDIA_PROCESS_LIMITS,
  NO_PROTECTIONS,
  type ProcessLimits,
  type Protections,
} from './protections.ts';

interface LauncherOptions {
  readonly protections?: Protections;
  /** Files and folders that are hidden from every sandboxed process. */
  readonly hidden?: readonly string[];
  /** Folders of inputs, which stay readable inside hidden folders. */
  readonly readable?: readonly string[];
  /** Variables to pass on beside those of the allow-list, by name; for tests. */
  readonly variables?: readonly string[];
}

/** The settings of one process. */
export interface LaunchOptions {
  readonly execArgv: readonly string[];
  /** Variables that are set unless the environment of the service sets them. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Passes the variables of the AWS SDK's credential chain on. A sandbox hides its files from other processes. */
  readonly aws?: boolean;
  /** Passes all variables on but those of the service itself and of AWS: libraries of vendors have variables of their own. */
  readonly vendor?: boolean;
  /** The folders that the process may write; missing ones are created. Without this list the process is not sandboxed. */
  readonly writable?: readonly string[];
  readonly limits?: ProcessLimits;
  /** Makes the process the leader of a process group of its own. */
  readonly detached?: boolean;
  readonly serialization?: SerializationType;
  /** The number of socket pairs beside the IPC channel: `stdio[4]` and up. */
  readonly pipeCount?: number;
}

/**
 * Starts the child processes of the service with allow-listed variables, limits of the kernel, fewer privileges, and a
 * sandbox where the system has one. The kernel kills every child when the service exits (parent-death signal).
 */
export class Launcher {
  readonly #options: LauncherOptions;
  readonly #protections: Protections;
  readonly #realPaths = new RealPaths();
  #hidden: readonly string[];

  constructor(options: LauncherOptions = {}) {
    this.#options = options;
    this.#hidden = options.hidden ?? [];
    this.#protections = options.protections ?? NO_PROTECTIONS;
  }

  /** True where processes with writable folders run in a sandbox. */
  get hasSandbox(): boolean {
    return this.#protections.bwrap.length > 0;
  }

  /** Hides further files and folders from processes that are started from now on. */
  hide(paths: readonly string[]): void {
    this.#hidden = [...new Set([...this.#hidden, ...paths])];
  }

  /** Looks at the folders of sandboxes again, which may have been made or moved. To be called before a sandboxed process is started. */
  lookAtFolders(): Promise<void> {
    return this.#realPaths.look();
  }

  /** The writable folder that the sandboxes of now are without, because it hangs; null where there is none. */
  get folderLeftOut(): string | null {
    return this.#realPaths.hanging;
  }

  /**
   * Starts a module in a Node process with an IPC channel. Standard output and error are those of the service. Throws, or
   * has the process emit an error, where the system gives none.
   */
  launch(entry: URL, options: LaunchOptions): ChildProcess {
    const environment = this.#environmentFor(options);
    const command = [process.execPath, ...options.execArgv, fileURLToPath(entry)];
    const [program, ...args] = [...this.#prefixFor(options, environment), ...command] as [string, ...string[]];
    const pipes = Array.from({ length: options.pipeCount ?? 0 }, () => 'pipe' as const);
    const child = spawn(program, args, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', ...pipes],
      env: environment,
      detached: options.detached ?? false,
      serialization: options.serialization ?? 'json',
    });
    if (child.stdio !== undefined) return child;
    // If no more files can be opened, Node makes neither streams nor a channel, and emits the error later.
    child.on('error', () => undefined);
    throw new Error('a process cannot be started: too many files are open');
  }

  #prefixFor(
    { writable, aws, limits = MEDIA_PROCESS_LIMITS }: LaunchOptions,
    environment: NodeJS.ProcessEnv,
  ): string[] {
    const { prlimit, setpriv, setprivReduced, bwrap } = this.#protections;
    const limiting = prlimit === null ? [] : limitPrefix(prlimit, limits);
    if (writable === undefined) return [...limiting, ...setpriv];
    if (!this.hasSandbox) return [...limiting, ...setprivReduced];
    const { readable = [] } = this.#options;
    const cache = workerCacheFolder();
    const folders = [...writable, ...(writable.length > 0 && cache !== null ? [cache] : [])];
    const paths = {
      writable: this.#realPaths.of(folders, true),
      hidden: aws ? this.#hidden : [...this.#hidden, ...awsFiles()],
      readable: this.#realPaths.of(readable, false),
    };
    return [...limiting, ...bwrap, ...mountArguments(paths, environment), '--'];
  }

  #environmentFor({ environment = {}, aws = false, vendor = false, writable }: LaunchOptions): NodeJS.ProcessEnv {
    const folder = writable === undefined ? cacheFolder() : workerCacheFolder();
    const names = this.#options.variables ?? [];
    return {
      MALLOC_MMAP_THRESHOLD_: MMAP_THRESHOLD_BYTES,
      ...environment,
      ...childEnvironment(process.env, { aws, vendor, names }),
      ...(folder != null && { NODE_COMPILE_CACHE: folder }),
    };
  }
}

/**
 * Smallest allocation that the C library returns to the system as soon as it is freed. Left to itself, the library raises
 * this to the largest size that was freed, up to 32 MiB: fragments of 3 MB from S3 to S3 then took 243 MiB in their worker
 * instead of 179, and the signer took 52 MiB instead of 41 (PSS, one to three runs each).
 */
const MMAP_THRESHOLD_BYTES = String(512 * 1024);

/** Returns the folder of the compile cache, which Node keeps in a folder of its version; null where there is none. */
function cacheFolder(): string | null {
  const own = getCompileCacheDir();
  return own === undefined ? null : dirname(own);
}

/**
 * Returns the folder of the workers' compile cache; null where there is none. Workers read hostile bytes, so it is not the
 * folder that the service and the signer load code from.
 */
function workerCacheFolder(): string | null {
  const own = cacheFolder();
  return own === null ? null : join(own, 'workers');
}

/**
 * Knows the real paths of folders, which may lie on a network file system that hangs. The first process waits for them; for later
 * ones they are as the last look found them, of which one at a time holds a thread.
 */
class RealPaths {
  readonly #known = new Map<string, { readonly make: boolean; readonly path: string | undefined }>();
  #looking: Promise<void> | null = null;
  #asked: string | null = null;
  /** The folder to write that has not answered in time; null where there is none. */
  hanging: string | null = null;

  /** Returns the real paths of those folders that are there, and do not hang. `make`: missing ones are created. */
  of(folders: readonly string[], make: boolean): readonly string[] {
    for (const folder of folders.filter((each) => !this.#known.has(each))) {
      if (make) makeFolder(folder);
      this.#known.set(folder, { make, path: realPathOf(folder) });
    }
    return folders.flatMap((folder) => (folder === this.hanging ? [] : (this.#known.get(folder)?.path ?? [])));
  }

  /** Looks again. Resolves when that is done, or after a bound. */
  async look(): Promise<void> {
    this.#looking ??= this.#lookAtAll().finally(() => {
      this.#looking = null;
    });
    const looked = this.#looking.then(() => true);
    if (!(await raceTimeout(looked, LOOK_BOUND_MS, false))) this.hanging = this.#asked;
  }

  async #lookAtAll(): Promise<void> {
    for (const [folder, { make }] of [...this.#known]) {
      this.#asked = make ? folder : null;
      if (make) await mkdir(folder, NEW_FOLDER).catch(() => undefined);
      this.#known.set(folder, { make, path: await realpath(folder).catch(() => undefined) });
      this.hanging = null;
    }
  }
}

/** The time after which a folder counts as hanging, in milliseconds: a process starts without it, or with what was known of it. */
const LOOK_BOUND_MS = 1_000;

const NEW_FOLDER = { recursive: true, mode: 0o700 } as const;

/** Creates a folder. Ignores failures: the process that writes there reports why it cannot. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, NEW_FOLDER);
  } catch {
    // See above.
  }
}

/**
 * Returns the exit code or signal of a process, as Node reports it for one without a sandbox: bwrap(1) exits with 128 plus
 * the number of the signal that killed the process in it.
 */
export function exitOf(
  code: number | null,
  signal: NodeJS.Signals | null,
): { code: number | null; signal: NodeJS.Signals | null } {
  if (signal !== null || code === null || code <= 128) return { code, signal };
  const named = Object.entries(constants.signals).find(([, number]) => number === code - 128);
  return named === undefined ? { code, signal } : { code: null, signal: named[0] as NodeJS.Signals };
}

/** Disables core dumps of this process and of those that it starts, where the system has prlimit(1). */
export async function disableCoreDumps(): Promise<void> {
  const prlimit = process.platform === 'linux' ? findProgram('prlimit') : null;
  if (prlimit === null) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  execFile(prlimit, ['--pid', String(process.pid), `--core=${coreLimit()}`], () => resolve());
  await promise;
}

/** Variables that every child process may need: paths of programs, certificates and temporary files, and the locale. */
const BASE_VARIABLES: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TMPDIR',
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_SYSTEM_CA',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  // The path of a file that no request may read. Its contents stay with the service.
  'SERVICE_CONFIG_PATH',
]);
const BASE_PREFIXES: readonly string[] = ['LC_', 'MALLOC_', 'UV_'];

/** The prefix of the variables of the AWS SDK's credential chain. */
const AWS_PREFIX = 'AWS_';

/** The prefix of the variables that set keys of the configuration, some of which are secrets. */
const SERVICE_PREFIX = 'SERVICE__';

/**
 * Returns the variables that a child process of the service gets: those of an allow-list, so that no secret of the
 * service's environment (`SERVICE__…`) reaches one. `names` are further ones to pass on.
 */
function childEnvironment(
  env: NodeJS.ProcessEnv,
  { aws, vendor, names }: { readonly aws: boolean; readonly vendor: boolean; readonly names: readonly string[] },
): NodeJS.ProcessEnv {
  const isPassedOn = (name: string): boolean =>
    BASE_VARIABLES.has(name) ||
    BASE_PREFIXES.some((prefix) => name.startsWith(prefix)) ||
    (name.startsWith(AWS_PREFIX) ? aws : vendor && !name.toUpperCase().startsWith(SERVICE_PREFIX)) ||
    names.includes(name);
  return Object.fromEntries(Object.entries(env).filter(([name]) => isPassedOn(name)));
}

/** The paths of a sandbox, absolute. */
interface SandboxPaths {
  /** Folders that the process may write, without links. Everything else is read-only. */
  readonly writable: readonly string[];
  /** Folders that stay readable inside hidden folders, without links. */
  readonly readable: readonly string[];
  /**
   * Files and folders that the process must not see: the signing key and the configuration. Links are resolved here, and missing
   * paths are ignored.
   */
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

/** Variables that name files of the AWS SDK's credential chain. */
const AWS_FILE_VARIABLES = [
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
  'AWS_SHARED_CREDENTIALS_FILE',
  'AWS_CONFIG_FILE',
];

/**
 * Variables that name files which the process reads, such as the token of a web identity. Their folders are mounted,
 * because such files are replaced by renaming.
 */
const FILE_VARIABLES = [...AWS_FILE_VARIABLES, 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'];

/** Returns the paths of the AWS SDK's credential chain. Where a key is in AWS KMS, whoever reads them signs. */
function awsFiles(): readonly string[] {
  return [join(homedir(), '.aws'), ...AWS_FILE_VARIABLES.flatMap((name) => process.env[name] ?? [])];
}

/** The service's code, two folders above this one. A process that could write it could change the next process. */
const CODE_FOLDER = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Returns the arguments of bwrap(1) that make the host's files read-only, some folders writable, and hide some paths. Deeper
 * paths are mounted later, so that each takes precedence over the folders around it.
 */
export function mountArguments(paths: SandboxPaths, environment: NodeJS.ProcessEnv): string[] {
  const hidden = [SOCKET_FOLDER, ...withSecretFolders(paths)];
  const named = FILE_VARIABLES.flatMap((name) => environment[name] ?? []).map(dirname);
  const own = realMountsOf([CODE_FOLDER, dirname(process.execPath)], 'read-only');
  const kept = [
    ...realMountsOf([...NEEDED_SOCKET_FOLDERS, ...named], 'read-only'),
    ...mountsOf(paths.readable, 'read-only'),
  ];
  const given = [...mountsOf(paths.writable, 'writable'), ...realMountsOf(hidden, 'hidden')];
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

function mountsOf(paths: readonly string[], as: Mount['as']): readonly Mount[] {
  return paths.map((path) => ({ path, as }));
}

function realMountsOf(paths: readonly string[], as: Mount['as']): readonly Mount[] {
  return mountsOf(
    paths.flatMap((path) => realPathOf(path) ?? []),
    as,
  );
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
 * Hides whole folders that hold only hidden files, or links to such files and folders, as Kubernetes mounts secrets. The mount over
 * a single file is lost when the file is replaced by renaming, and links may be swapped.
 */
function withSecretFolders({ hidden, writable, readable }: SandboxPaths): string[] {
  const secret = new Set(hidden.flatMap((path) => realPathOf(path) ?? []));
  const own = [CODE_FOLDER, process.execPath].flatMap((path) => realPathOf(path) ?? []);
  const needed = [...writable, ...readable, ...own];
  const holdsOnly = (folder: string, known: ReadonlySet<string>): boolean =>
    namesIn(folder).every((name) => known.has(realPathOf(join(folder, name)) ?? '')) &&
    !needed.some((path) => path === folder || isBelow(path, folder));
  const inner = [...secret].map(dirname).filter((folder) => holdsOnly(folder, secret));
  const outer = hidden
    .flatMap((path) => realPathOf(dirname(path)) ?? [])
    .filter((folder) => holdsOnly(folder, new Set([...secret, ...inner])));
  const folders = [...new Set([...inner, ...outer])];
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
