import { type ChildProcess, execFile, type SerializationType, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from './environment.ts';
import { findProgram } from './find-program.ts';
import {
  coreLimit,
  limitWords,
  MEDIA_PROCESS_LIMITS,
  NO_PROTECTIONS,
  type ProcessLimits,
  type Protections,
} from './protections.ts';
import { mountArguments } from './sandbox-mounts.ts';

export interface LauncherOptions {
  readonly protections?: Protections;
  /** Files and folders that no sandboxed process sees. */
  readonly hidden?: readonly string[];
  /** Folders of inputs, which stay readable wherever they lie. */
  readonly readable?: readonly string[];
  /** Variables to pass on beside those of the allow-list, by name; for tests. */
  readonly variables?: readonly string[];
}

/** How a process is started. */
export interface LaunchOptions {
  readonly execArgv: readonly string[];
  /** Variables that are set unless the environment of the service sets them. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Whether it gets the variables of the AWS SDK's credential chain. */
  readonly s3?: boolean;
  /** The folders that it may write; those that are missing are made. A process without them is not sandboxed. */
  readonly writable?: readonly string[];
  readonly limits?: ProcessLimits;
  /** Whether it leads a process group of its own. */
  readonly detached?: boolean;
  readonly serialization?: SerializationType;
  /** Pipes beside the channel of messages: `stdio[4]` and up. */
  readonly pipeCount?: number;
}

/**
 * Starts the child processes of the service: with an environment of allow-listed variables, limits of the kernel, fewer
 * privileges, and a sandbox where the system has one. Every child ends when the service ends, in whatever way.
 */
export class Launcher {
  readonly #options: LauncherOptions;
  readonly #protections: Protections;

  constructor(options: LauncherOptions = {}) {
    this.#options = options;
    this.#protections = options.protections ?? NO_PROTECTIONS;
  }

  /** Whether processes with folders to write run in a sandbox. */
  get hasSandbox(): boolean {
    return this.#protections.bwrap.length > 0;
  }

  /** Starts a module in a Node process with a channel of messages. Standard output and error are those of the service. */
  launch(entry: URL, options: LaunchOptions): ChildProcess {
    const environment = this.#environmentFor(options);
    const command = [process.execPath, ...options.execArgv, fileURLToPath(entry)];
    const [program, ...args] = [...this.#wordsFor(options, environment), ...command] as [string, ...string[]];
    const pipes = Array.from({ length: options.pipeCount ?? 0 }, () => 'pipe' as const);
    return spawn(program, args, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', ...pipes],
      env: environment,
      detached: options.detached ?? false,
      serialization: options.serialization ?? 'json',
    });
  }

  #wordsFor({ writable, limits = MEDIA_PROCESS_LIMITS }: LaunchOptions, environment: NodeJS.ProcessEnv): string[] {
    const { prlimit, setpriv, setprivReduced, bwrap } = this.#protections;
    const limiting = prlimit === null ? [] : limitWords(prlimit, limits);
    if (writable === undefined) return [...limiting, ...setpriv];
    if (!this.hasSandbox) return [...limiting, ...setprivReduced];
    const { hidden = [], readable = [] } = this.#options;
    const cache = workerCacheFolder();
    const folders = [...writable, ...(writable.length > 0 && cache !== null ? [cache] : [])];
    for (const folder of folders) makeFolder(folder);
    return [...limiting, ...bwrap, ...mountArguments({ writable: folders, hidden, readable }, environment), '--'];
  }

  #environmentFor({ environment = {}, s3 = false, writable }: LaunchOptions): NodeJS.ProcessEnv {
    const folder = writable === undefined ? getCompileCacheDir() : workerCacheFolder();
    const names = this.#options.variables ?? [];
    return {
      ...environment,
      ...childEnvironment(process.env, { s3, names }),
      ...(folder != null && { NODE_COMPILE_CACHE: folder }),
    };
  }
}

/**
 * Where workers keep compiled code. They read hostile bytes, so it is not the folder that the service and the signer
 * start from.
 */
function workerCacheFolder(): string | null {
  const own = getCompileCacheDir();
  return own === undefined ? null : join(dirname(own), 'workers');
}

/** A folder that cannot be made cannot be written either; who writes there tells why. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch {
    // See above.
  }
}

/**
 * Returns how a process ended, as Node tells it of a child that it started directly: bwrap(1) ends with 128 and the number
 * of the signal that ended the process in it.
 */
export function endOf(
  code: number | null,
  signal: NodeJS.Signals | null,
): { code: number | null; signal: NodeJS.Signals | null } {
  if (signal !== null || code === null || code <= 128) return { code, signal };
  const named = Object.entries(constants.signals).find(([, number]) => number === code - 128);
  return named === undefined ? { code, signal } : { code: null, signal: named[0] as NodeJS.Signals };
}

/** Keeps this process and those that it starts from dumping core, where the system has prlimit(1). */
export async function disableCoreDumps(): Promise<void> {
  const prlimit = process.platform === 'linux' ? findProgram('prlimit') : null;
  if (prlimit === null) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  execFile(prlimit, ['--pid', String(process.pid), `--core=${coreLimit()}`], () => resolve());
  await promise;
}
