import { constants, type Dirent, lstatSync, readdirSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve, sep } from 'node:path';
import { createInterface } from 'node:readline';
import { isReservedName } from '#bytes/staged-name.ts';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';
import { HEAD_SIZE_BYTES } from '#formats/format-handler.ts';
import { AUDIO_ONLY_EXTENSIONS, formatOf, id3, riff } from '#formats/formats.ts';
import { sourceNameOf } from '#outputs/output-path.ts';
import { isPlaylist } from '#outputs/output-sink.ts';

/** A path or address of a command, or a file that was found below one. */
export interface FoundInput {
  /** As it was named. */
  readonly path: string;
  readonly kind: 'file' | 'publication' | 'folder' | 'address';
  /** The reason why it is no input. */
  readonly problem?: AppError;
}

export interface Search {
  /** Takes each media file in folders that are no publications. */
  readonly isRecursive: boolean;
  /** Folders are not searched, because they lie in one that is watched. */
  readonly isWatched?: boolean;
  /** Takes every folder as one input. */
  readonly takesFolders?: boolean;
  /** Called for a named output of an earlier run, which is left out; undefined where these are inputs. */
  readonly skipsSigned?: (path: string) => void;
  /** Called for an entry of a searched folder that is a link, or no media. */
  readonly leavesOut?: (path: string) => void;
}

/** Returns the paths of a command; `-` stands for those on standard input, one a line. */
export async function namedPaths(given: readonly string[]): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const path of given) {
    if (path !== '-') paths.push(path);
    else for await (const line of createInterface({ input: process.stdin })) if (line !== '') paths.push(line);
  }
  return paths;
}

export function isAddress(path: string): boolean {
  return /^(?:https?|s3):\/\//i.test(path);
}

/** Returns the deepest folder that the outputs of all paths lie in, where each lies beside its input. */
export function commonFolder(paths: readonly string[], search: Search): string {
  const [first = process.cwd(), ...others] = paths.map((path) => folderBeside(resolve(path), search));
  return others.reduce((common, folder) => {
    const parts = folder.split(sep);
    const shared = common.split(sep).findIndex((part, index) => part !== parts[index]);
    return shared < 0 ? common : common.split(sep).slice(0, shared).join(sep) || sep;
  }, first);
}

/** Returns the folder beside an input, or the one that is searched for inputs. */
function folderBeside(path: string, { isRecursive, takesFolders }: Search): string {
  if (isPlaylist(path)) return dirname(dirname(path));
  return isRecursive && takesFolders !== true && isSearched(path) ? path : dirname(path);
}

function isSearched(path: string): boolean {
  try {
    return lstatSync(path).isDirectory() && !hasPlaylists(readdirSync(path));
  } catch {
    // The search reports it.
    return false;
  }
}

/** Yields the inputs that paths name. Links are not followed, and no path is taken for a pattern. */
export async function* findInputs(paths: Iterable<string>, search: Search): AsyncGenerator<FoundInput, void, void> {
  for (const path of paths) {
    if (isAddress(path)) yield { path, kind: 'address' };
    else yield* findAt(path, search);
  }
}

async function* findAt(path: string, search: Search): AsyncGenerator<FoundInput, void, void> {
  const { isWatched = false } = search;
  try {
    const stats = lstatSync(path);
    if (stats.isSymbolicLink()) yield refused(path, new AppError('SOURCE_IS_LINK', { path }));
    else if (search.skipsSigned !== undefined && isSigned(path)) search.skipsSigned(path);
    else if (!stats.isDirectory()) yield isPlaylist(path) ? publicationOf(path) : { path, kind: 'file' };
    else if (search.takesFolders) yield { path, kind: 'folder' };
    else if (hasPlaylists(readdirSync(path))) yield { path, kind: 'publication' };
    else if (search.isRecursive) yield* walk(path, search);
    else yield refused(path, new AppError('FOLDER_WITHOUT_PLAYLISTS', { path, ...(isWatched && { isWatched }) }));
  } catch (error) {
    yield refused(path, sourceError(path, error));
  }
}

/** Yields the media files and publications below a folder, in the order of their names; hidden ones are left out. */
async function* walk(folder: string, search: Search): AsyncGenerator<FoundInput, void, void> {
  const entries = readdirSync(folder, { withFileTypes: true }).sort((one, other) => (one.name < other.name ? -1 : 1));
  for (const entry of entries) {
    const { name } = entry;
    if (name.startsWith('.') || isReservedName(name) || (search.skipsSigned !== undefined && isSigned(name))) continue;
    yield* entryOf(entry, join(folder, name), search);
  }
}

async function* entryOf(entry: Dirent, path: string, search: Search): AsyncGenerator<FoundInput, void, void> {
  try {
    if (entry.isDirectory()) {
      if (hasPlaylists(readdirSync(path))) yield { path, kind: 'publication' };
      else yield* walk(path, search);
    } else if (entry.isFile() && formatOf(await headOf(path)) !== undefined) yield { path, kind: 'file' };
    else search.leavesOut?.(path);
  } catch (error) {
    yield refused(path, sourceError(path, error));
  }
}

function refused(path: string, problem: AppError): FoundInput {
  return { path, kind: 'file', problem };
}

function publicationOf(playlist: string): FoundInput {
  return { path: dirname(playlist), kind: 'publication' };
}

function hasPlaylists(names: readonly string[]): boolean {
  return names.some(isPlaylist);
}

/** Tells whether a path is named as outputs of this program are. */
export function isSigned(path: string): boolean {
  return sourceNameOf(basename(path)) !== null;
}

/** Translates a system error of opening a path. Throws any other error. */
export function sourceError(path: string, cause: unknown): AppError {
  if (!isSystemError(cause)) throw cause;
  switch (systemErrorCode(cause)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new AppError('SOURCE_NOT_FOUND', { path });
    case 'EACCES':
      return new AppError('SOURCE_NOT_PERMITTED', { path });
    default:
      return new AppError('SOURCE_OPEN_FAILED', { path, problem: problemOf(cause) });
  }
}

/**
 * Returns the operation that signs a file, by what its first bytes are. That of audio takes all names of audio, and says what is wrong
 * with the bytes. Throws `SOURCE_…`.
 */
export async function signOperationOf(path: string): Promise<'c2pa-audio' | 'c2pa-video'> {
  const head = await headOf(path).catch((error: unknown) => {
    throw sourceError(path, error);
  });
  const format = formatOf(head);
  const isAudio = format === id3 || (format === riff && head.toString('latin1', 8, 12) === 'WAVE');
  return isAudio ? 'c2pa-audio' : operationNamedBy(path);
}

/** Returns the operation that takes files of a name. */
export function operationNamedBy(path: string): 'c2pa-audio' | 'c2pa-video' {
  return AUDIO_ONLY_EXTENSIONS.has(extname(path).slice(1).toLowerCase()) ? 'c2pa-audio' : 'c2pa-video';
}

/** Reads the first bytes of a file. Never waits, as for a FIFO. */
async function headOf(path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_SIZE_BYTES), 0, HEAD_SIZE_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
