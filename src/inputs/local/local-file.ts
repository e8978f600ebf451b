import { type BigIntStats, constants, fstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import { Descriptor, FileSource } from '#bytes/file-source.ts';
import { realPathIfItAnswers } from '#bytes/file-system-gate.ts';
import { isSameOrInside, nearestRealPath } from '#bytes/path-overlap.ts';
import { isInStaging } from '#bytes/staged-name.ts';
import type { Config } from '#config/config.ts';
import { protectedPaths } from '#config/protected-paths.ts';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';
import { inputName, nameOfPath } from '../input-name.ts';
import type { FileOpener } from '../input-opener.ts';

/**
 * Reads never wait (a FIFO would), and the last link was resolved before: if it is one again, somebody changed it.
 */
export const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** Returns the opener of `local_file_path`. */
export function localFileOpener(policy: LocalInputPolicy): FileOpener<'local_file_path'> {
  return ({ path }, inputIndex, { signal }) =>
    openLocalFile(path, inputName([nameOfPath(path)], inputIndex), policy, signal);
}

/**
 * Opens a regular file of this host. A relative path is taken from the working directory of the service. Links are
 * resolved first, and where they lead must be allowed by the policy. `name` is what the source will be called. Throws
 * `SOURCE_…`, among them `SOURCE_EMPTY`.
 */
export async function openLocalFile(
  path: string,
  name: string,
  policy: LocalInputPolicy,
  signal: AbortSignal,
): Promise<ByteSource> {
  signal.throwIfAborted();
  const check = realPathCheck(policy);
  const realPath = await resolveAllowed(path, check);
  checkRegular(path, await translated(path, () => statSync(realPath, { bigint: true })));
  const descriptor = await translated(path, () => Descriptor.open(realPath, OPEN_FLAGS));
  try {
    const opened = fstatSync(descriptor.number, { bigint: true });
    checkRegular(path, opened);
    const openedPath = pathOfOpened(descriptor);
    if (openedPath !== undefined) await check(path, openedPath);
    if (opened.size === 0n) throw new AppError('SOURCE_EMPTY', { path });
    return new FileSource(descriptor, name, realPath, opened);
  } catch (error) {
    await descriptor.close();
    throw error;
  }
}

/** Resolves the links of a path. A worker waits for its disk; the process of the service, which others wait for, does not. */
type ResolveLinks = (path: string) => string | Promise<string>;

/**
 * Returns the path with its links resolved, where it exists and what is there may be read. Throws
 * `SOURCE_PATH_INVALID`, or another `SOURCE_…` where it may not be read.
 */
export async function resolveAllowed(
  path: string,
  check: RealPathCheck,
  resolveLinks: ResolveLinks = realpathSync.native,
): Promise<string> {
  if (path.includes('\0')) throw new AppError('SOURCE_PATH_INVALID', { problem: 'it holds a NUL character' });
  if (path === '') throw new AppError('SOURCE_PATH_INVALID', { problem: 'it is empty' });
  const realPath = await realPathOf(path, check, resolveLinks);
  await check(path, realPath);
  return realPath;
}

/**
 * Returns the real path of an open file; undefined when the system does not tell. A folder above it may have been replaced
 * by a link since its path was resolved.
 */
export function pathOfOpened(descriptor: Descriptor): string | undefined {
  return process.platform === 'linux' ? readlinkSync(descriptor.path) : undefined;
}

async function realPathOf(path: string, check: RealPathCheck, resolveLinks: ResolveLinks): Promise<string> {
  try {
    return await resolveLinks(path);
  } catch (error) {
    // Callers must not learn which files exist outside the allowed folders.
    await check(path, await nearestRealPath(path));
    throw openError(path, error);
  }
}

function checkRegular(path: string, stats: BigIntStats): void {
  if (stats.isFile()) return;
  if (stats.isDirectory()) throw new AppError('SOURCE_IS_FOLDER', { path });
  throw new AppError('SOURCE_NOT_REGULAR', { path, kind: kindOf(stats) });
}

/** Describes an entry that is neither a regular file nor a folder, as the end of "it is". */
export function kindOf(stats: Pick<BigIntStats, 'isFIFO' | 'isSocket'>): string {
  if (stats.isFIFO()) return 'a FIFO';
  if (stats.isSocket()) return 'a socket';
  return 'a device';
}

/** Runs a step whose system errors are about `path`. */
export async function translated<T>(path: string, step: () => Promise<T> | T): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw openError(path, error);
  }
}

/** Translates a system error of opening or listing into an error about the path. Returns any other error unchanged. */
export function openError(path: string, cause: unknown): unknown {
  if (!isSystemError(cause)) return cause;
  switch (systemErrorCode(cause)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new AppError('SOURCE_NOT_FOUND', localPath(path), { cause });
    case 'EACCES':
    case 'EPERM':
      return new AppError('SOURCE_NOT_PERMITTED', { path }, { cause });
    default:
      return new AppError('SOURCE_OPEN_FAILED', { path, problem: problemOf(cause) }, { cause });
  }
}

/** Returns a path as messages tell it. */
function localPath(path: string): { path: string; relativeTo?: 'start_folder' } {
  return isAbsolute(path) ? { path } : { path, relativeTo: 'start_folder' };
}

/** The folders that local inputs are read from. Paths may be relative to the working directory, and need not exist. */
export interface LocalInputPolicy {
  /** Folders that inputs must lie in, after resolving links; undefined: anywhere but the folders of the system. */
  readonly roots: readonly string[] | undefined;
  /** Files and folders of the service itself, which are refused even inside a root. */
  readonly protectedPaths: readonly string[];
}

/** System folders, which hold nobody's media. */
const SYSTEM_FOLDERS = ['/etc', '/proc', '/sys', '/dev', '/boot', '/run', '/var/lib', '/var/log'] as const;

/** Returns the policy that a configuration asks for; `configFile` is where it stands, which is protected too. */
export function localInputPolicy(config: Config, configFile: string): LocalInputPolicy {
  return { roots: config.input_resolvers.local.roots, protectedPaths: protectedPaths(config, configFile) };
}

/**
 * Rejects unless what is at a path, whose links are resolved, may be read. `path` is how the caller is told of it,
 * for the message.
 */
export type RealPathCheck = (path: string, realPath: string) => Promise<void>;

/** Time, in milliseconds, for which the real path of a folder is cached. */
const RESOLVED_CACHE_MS = 1000;

/** Has folders resolved at most once a second each, and once while their file system hangs: thousands of inputs share them. */
function cached(realPathOf: (folder: string) => Promise<string>): (folder: string) => Promise<string> {
  const known = new Map<string, { readonly path: Promise<string>; untilMs: number }>();
  return (folder) => {
    const last = known.get(folder);
    if (last !== undefined && performance.now() < last.untilMs) return last.path;
    const path = realPathOf(folder).finally(() => {
      resolved.untilMs = performance.now() + RESOLVED_CACHE_MS;
    });
    const resolved = { path, untilMs: Number.POSITIVE_INFINITY };
    known.set(folder, resolved);
    return path;
  };
}

const realFolder = cached(nearestRealPath);
const realFolderIfItAnswers = cached(realPathIfItAnswers);

/**
 * Returns the check that a policy asks for. It waits for the root that a path begins with only: another folder may lie on a
 * file system that hangs, and nothing in there can be read meanwhile.
 */
export function realPathCheck({ roots, protectedPaths: own }: LocalInputPolicy): RealPathCheck {
  return async (path, realPath) => {
    if (roots !== undefined && !(await liesInRoots(path, realPath, roots)))
      throw new AppError('SOURCE_OUTSIDE_ROOTS', localPath(path));
    const ownPaths = await Promise.all(own.map(realFolderIfItAnswers));
    if (isInStaging(realPath) || liesInAny(realPath, ownPaths)) throw new AppError('SOURCE_PROTECTED', { path });
    const systemFolder = roots === undefined ? systemFolderOf(realPath) : undefined;
    if (systemFolder !== undefined) throw new AppError('SOURCE_IN_SYSTEM_PLACE', { path, place: systemFolder });
  };
}

async function liesInRoots(path: string, realPath: string, roots: readonly string[]): Promise<boolean> {
  const around = roots.filter((root) => isSameOrInside(resolve(path), resolve(root)));
  if (liesInAny(realPath, await Promise.all(around.map(realFolder)))) return true;
  return liesInAny(realPath, await Promise.all(roots.map(realFolderIfItAnswers)));
}

/** Returns the system folder that a path lies in, if any: one of a list, or a hidden folder of a home folder. */
function systemFolderOf(realPath: string): string | undefined {
  return SYSTEM_FOLDERS.find((folder) => isSameOrInside(realPath, folder)) ?? hiddenHomeFolderOf(realPath);
}

function hiddenHomeFolderOf(realPath: string): string | undefined {
  for (const home of ['/root', homedir(), homeAbove(realPath)]) {
    if (home === undefined || home === '/' || !realPath.startsWith(`${home}/.`)) continue;
    const [first] = relative(home, realPath).split(sep);
    return `${home}/${first}`;
  }
  return undefined;
}

/** Returns `/home/<user>` for a path inside it. */
function homeAbove(realPath: string): string | undefined {
  return /^\/home\/[^/]+/.exec(realPath)?.[0];
}

function liesInAny(realPath: string, folders: readonly string[]): boolean {
  return folders.some((folder) => isSameOrInside(realPath, folder));
}
