import { constants, existsSync, fstatSync, lstatSync, mkdirSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { Descriptor, syncFolder } from '#bytes/file-source.ts';
import { isSameOrInside } from '#bytes/path-overlap.ts';
import { AppError } from '#errors/app-error.ts';
import { systemErrorCode } from '#errors/system-problem.ts';

/**
 * Tells whether paths are resolved relative to open folders. Node has no `openat`; Linux resolves `/proc/self/fd/<n>/name`
 * in the same way. On other systems, and without /proc, the folder's path is resolved again for each call: somebody who
 * may write to the base folder of outputs can then have an output redirected by replacing a folder at the right moment.
 */
const RESOLVES_BY_HANDLE = process.platform === 'linux' && existsSync('/proc/self/fd');

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

/**
 * An open folder that outputs are written to. Its entries are changed in the folder that was opened, and
 * checked, whatever stands at its path meanwhile. Throws the system's errors as they are.
 */
export class FolderHandle {
  /** The path at which it was opened, with links resolved. */
  readonly path: string;
  readonly #file: Descriptor;

  private constructor(file: Descriptor, path: string) {
    this.#file = file;
    this.path = path;
  }

  /** Opens a folder wherever links lead; `path` tells where that was. */
  static follow(path: string): FolderHandle {
    const file = Descriptor.open(path, O_RDONLY | O_DIRECTORY);
    try {
      return new FolderHandle(file, RESOLVES_BY_HANDLE ? readlinkSync(file.path) : realpathSync.native(path));
    } catch (error) {
      void file.close();
      throw error;
    }
  }

  /** Opens a folder in this one, wherever links lead. */
  follow(name: string): FolderHandle {
    return FolderHandle.follow(this.entry(name));
  }

  /** Opens a folder in this one; an error (ELOOP or ENOTDIR) where a link stands there. */
  enter(name: string): FolderHandle {
    const file = Descriptor.open(this.entry(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return new FolderHandle(file, join(this.path, name));
  }

  /** Tells whether `path` leads to this folder, and the folder still lies where it was opened. */
  isAt(path: string): boolean {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    const own = fstatSync(this.#file.number, { bigint: true });
    if (stats?.ino !== own.ino || stats.dev !== own.dev) return false;
    return !RESOLVES_BY_HANDLE || readlinkSync(this.self) === this.path;
  }

  /** A path to the folder itself, for calls of this process. */
  get self(): string {
    return RESOLVES_BY_HANDLE ? this.#file.path : this.path;
  }

  /** Returns a path to an entry, for calls of this process while the folder is open. */
  entry(name: string): string {
    return `${this.self}/${name}`;
  }

  /** Makes the names of what was created, renamed or removed in the folder durable. */
  sync(): Promise<void> {
    return this.#file.sync();
  }

  /** Closes the folder. Safe to call again. */
  close(): Promise<void> {
    return this.#file.close();
  }
}

// Folders are made and opened in synchronous calls: outputs are written in workers, where nobody else waits for the
// thread, and beside a small file a trip through the pool of threads costs more than the call.

/**
 * Makes the folder of a destination below `baseDir`, durably, and opens it. Links are followed, one folder at a time, as
 * long as what was opened lies in the base; a link that leads out of it is refused. The caller closes the folder.
 */
export async function openOutputFolder(baseDir: string, folder: string): Promise<FolderHandle> {
  let opened = await openBase(baseDir);
  const { path: basePath } = opened;
  try {
    for (const segment of relative(baseDir, folder).split(sep)) {
      if (segment === '') continue;
      const above = opened;
      opened = await openFolder(above, segment);
      await above.close();
      if (!isSameOrInside(opened.path, basePath)) throw new AppError('OUTPUT_LEAVES_BASE', { path: folder });
    }
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function openBase(baseDir: string): Promise<FolderHandle> {
  const firstMade = makeFolders(baseDir);
  if (firstMade !== undefined) {
    for (let made = baseDir; made.length >= firstMade.length; made = dirname(made)) await syncFolder(dirname(made));
  }
  return FolderHandle.follow(baseDir);
}

async function openFolder(above: FolderHandle, name: string): Promise<FolderHandle> {
  const path = above.entry(name);
  // Asked first, because an error for each file of a batch would cost more than all else that is done here.
  if (!existsSync(path)) await makeMissingFolder(above, name);
  return above.follow(name);
}

async function makeMissingFolder(above: FolderHandle, name: string): Promise<void> {
  const path = above.entry(name);
  try {
    mkdirSync(path);
    await above.sync();
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
    refuseDangling(path, `${above.path}/${name}`);
  }
}

/** Makes the base folder; returns the first folder that was missing, if any. */
function makeFolders(baseDir: string): string | undefined {
  try {
    return mkdirSync(baseDir, { recursive: true });
  } catch (error) {
    refuseDangling(baseDir, baseDir);
    throw error;
  }
}

/** Throws `OUTPUT_LINK_DANGLING` for a dangling link, of which the system only reports a missing folder. */
function refuseDangling(path: string, shownPath: string): void {
  if (existsSync(path) || !lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  throw new AppError('OUTPUT_LINK_DANGLING', { path: shownPath, target: readlinkSync(path) });
}
