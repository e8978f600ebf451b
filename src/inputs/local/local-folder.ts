import { type BigIntStats, type Dirent, fstatSync, statSync } from 'node:fs';
import { opendir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import { Descriptor, FileSource } from '#bytes/file-source.ts';
import { isSameOrInside } from '#bytes/path-overlap.ts';
import type { FolderFile, SourceFolder } from '#bytes/source-folder.ts';
import { isStagedName } from '#bytes/staged-name.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';
import { inputName, nameOfPath } from '../input-name.ts';
import { type FolderLimits, type FolderOpener, listedFolder } from '../input-opener.ts';
import {
  kindOf,
  type LocalInputPolicy,
  OPEN_FLAGS,
  openError,
  pathOfOpened,
  type RealPathCheck,
  realPathCheck,
  resolveAllowed,
  translated,
} from './local-file.ts';

/** Folders that are read at once, and entries per read of a folder. */
const MAX_CONCURRENT_FOLDERS = 4;
const ENTRIES_BATCH_SIZE = 256;

/** The character with which Node replaces bytes that are not UTF-8: such a name does not find the file again. */
const UNDECODABLE = '\ufffd';

/** Returns the opener of `local_folder_path`. */
export function localFolderOpener(policy: LocalInputPolicy, limits: FolderLimits): FolderOpener<'local_folder_path'> {
  return ({ path }, inputIndex, { signal }) =>
    openLocalFolder(path, inputName([nameOfPath(path)], inputIndex), policy, limits, signal);
}

/**
 * Lists a folder of this host, with all folders in it. Regular files are taken; a link is taken for the file that it
 * leads to, inside the folder; a link that leads elsewhere or to a folder, and everything that is no regular file, is
 * refused by its name. Stagings of this service are passed over. `name` is what the source will be called. Throws
 * `FOLDER_IS_ROOT`, `SOURCE_NOT_FOLDER`, `FOLDER_EMPTY`, `FOLDER_TOO_LARGE`, `FOLDER_ENTRY_REFUSED`, or what
 * `resolveAllowed` throws.
 */
export async function openLocalFolder(
  path: string,
  name: string,
  policy: LocalInputPolicy,
  limits: FolderLimits,
  signal: AbortSignal,
): Promise<SourceFolder> {
  signal.throwIfAborted();
  const check = realPathCheck(policy);
  const root = await resolveAllowed(path, check);
  if (root === '/') throw new AppError('FOLDER_IS_ROOT', {});
  const stats = await translated(path, () => stat(root));
  if (!stats.isDirectory()) throw new AppError('SOURCE_NOT_FOLDER', { path });
  const files = await new FolderListing({ path, root, check, limits, signal }).run();
  if (files.length === 0) throw new AppError('FOLDER_EMPTY', { path });
  return listedFolder(name, files, openListed);
}

/** A file as it was when the folder was listed. */
interface ListedFile extends FolderFile {
  readonly realPath: string;
  readonly ino: bigint;
  readonly dev: bigint;
  readonly mtimeNs: bigint;
}

interface ListingRequest {
  /** As the caller spelled it, for messages. */
  readonly path: string;
  readonly root: string;
  readonly check: RealPathCheck;
  readonly limits: FolderLimits;
  readonly signal: AbortSignal;
}

/** One walk over a folder, level by level. Its limits hold while it goes on: a folder may be larger than memory. */
class FolderListing {
  readonly #request: ListingRequest;
  readonly #files: ListedFile[] = [];
  #fileCount = 0;
  #folderCount = 0;
  #sizeBytes = 0;

  constructor(request: ListingRequest) {
    this.#request = request;
  }

  /** Returns all files, in no order. */
  async run(): Promise<ListedFile[]> {
    const { maxDepth } = this.#request.limits;
    let level = [''];
    for (let depth = 0; level.length > 0; depth += 1) {
      if (depth > maxDepth) throw this.#tooLarge('levels of folders', maxDepth);
      const below = await mapConcurrent(level, MAX_CONCURRENT_FOLDERS, (folder) => this.#readFolder(folder));
      level = below.flat();
    }
    return this.#files;
  }

  /** Takes the files of one folder, given relative to the root with a slash at its end, and returns the folders in it. */
  async #readFolder(folder: string): Promise<string[]> {
    const { path, root, signal } = this.#request;
    const folders: string[] = [];
    await translated(join(path, folder), async () => {
      for await (const entry of await opendir(join(root, folder), { bufferSize: ENTRIES_BATCH_SIZE })) {
        signal.throwIfAborted();
        if (isStagedName(entry.name)) continue;
        this.#countEntry(entry);
        if (entry.isDirectory()) folders.push(await this.#enter(`${folder}${entry.name}`));
        else await this.#addFile(`${folder}${entry.name}`, entry);
      }
    });
    return folders;
  }

  async #enter(folder: string): Promise<string> {
    const { path, root, check } = this.#request;
    await check(join(path, folder), join(root, folder));
    return `${folder}/`;
  }

  async #addFile(path: string, entry: Dirent): Promise<void> {
    const { root, check, signal, limits } = this.#request;
    signal.throwIfAborted();
    const realPath = entry.isSymbolicLink() ? await this.#followLink(path) : join(root, path);
    await check(join(this.#request.path, path), realPath);
    const stats = this.#statOf(path, realPath);
    if (stats.isDirectory()) throw this.#refusal(path, 'is a link to a folder');
    if (!stats.isFile()) throw this.#refusal(path, `is ${kindOf(stats)}, and only regular files are read`);
    const sizeBytes = Number(stats.size);
    this.#sizeBytes += sizeBytes;
    if (this.#sizeBytes > limits.maxBytes) throw this.#tooLarge('bytes', limits.maxBytes);
    const { ino, dev, mtimeNs } = stats;
    this.#files.push({ path, sizeBytes, isLink: entry.isSymbolicLink(), realPath, ino, dev, mtimeNs });
  }

  async #followLink(path: string): Promise<string> {
    const { root } = this.#request;
    const target = await realpath(join(root, path)).catch((error: unknown) => {
      if (isSystemError(error)) throw this.#refusal(path, `is a link that leads nowhere: ${problemOf(error)}`);
      throw error;
    });
    if (!isSameOrInside(target, root)) throw this.#refusal(path, 'is a link that leads out of the folder');
    return target;
  }

  /**
   * Returns the status of an entry, which the system has from listing it: to wait for a thread takes ten times as long. Throws
   * `SOURCE_CHANGED` for one that is gone; names that are not UTF-8 are never found.
   */
  #statOf(path: string, realPath: string): BigIntStats {
    try {
      return statSync(realPath, { bigint: true });
    } catch (error) {
      if (systemErrorCode(error) !== 'ENOENT') throw openError(join(this.#request.path, path), error);
      if (path.includes(UNDECODABLE)) throw this.#refusal(path, 'has a name that is not UTF-8');
      throw new AppError('SOURCE_CHANGED', { name: path }, { cause: error });
    }
  }

  #countEntry(entry: Dirent): void {
    const { maxFiles } = this.#request.limits;
    if (entry.isDirectory()) this.#folderCount += 1;
    else this.#fileCount += 1;
    if (this.#fileCount > maxFiles) throw this.#tooLarge('files', maxFiles);
    if (this.#folderCount > maxFiles) throw this.#tooLarge('folders', maxFiles);
  }

  #tooLarge(what: 'files' | 'folders' | 'bytes' | 'levels of folders', limit: number): AppError {
    return new AppError('FOLDER_TOO_LARGE', { path: this.#request.path, what, limit });
  }

  #refusal(entry: string, problem: string): AppError {
    return new AppError('FOLDER_ENTRY_REFUSED', { path: this.#request.path, entry, problem });
  }
}

/** Opens a file as it was listed. Throws `SOURCE_CHANGED` for another one. */
async function openListed(file: ListedFile, name: string): Promise<ByteSource> {
  const descriptor = await translated(file.realPath, () => Descriptor.open(file.realPath, OPEN_FLAGS));
  try {
    return new FileSource(descriptor, name, file.realPath, openedAsListed(descriptor, file));
  } catch (error) {
    await descriptor.close();
    throw error;
  }
}

/** Returns the status of an open file. Throws `SOURCE_CHANGED` when it is not the file that was listed. */
function openedAsListed(descriptor: Descriptor, file: ListedFile): BigIntStats {
  const opened = fstatSync(descriptor.number, { bigint: true });
  const openedPath = pathOfOpened(descriptor);
  const same =
    opened.ino === file.ino &&
    opened.dev === file.dev &&
    opened.mtimeNs === file.mtimeNs &&
    opened.size === BigInt(file.sizeBytes) &&
    (openedPath === undefined || openedPath === file.realPath);
  if (!same) throw new AppError('SOURCE_CHANGED', { name: file.path });
  return opened;
}
