import assert from 'node:assert/strict';
import {
  type BigIntStats,
  constants,
  existsSync,
  fstatSync,
  fsync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { Descriptor } from '#bytes/file-source.ts';
import { isSameOrInside } from '#bytes/path-overlap.ts';
import { AppError } from '#errors/app-error.ts';
import { systemErrorCode } from '#errors/system-problem.ts';

const syncInBackground = promisify(fsync);

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
  #users = 1;
  #identity: string | undefined;

  private constructor(file: Descriptor, path: string) {
    this.#file = file;
    this.path = path;
  }

  /** Opens a folder wherever links lead; `path` tells where that was. */
  static follow(path: string): FolderHandle {
    const file = Descriptor.open(path, O_RDONLY | O_DIRECTORY);
    try {
      return new FolderHandle(file, RESOLVES_BY_HANDLE ? readlinkSync(pathOf(file)) : realpathSync.native(path));
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
    if (stats === undefined || identityOf(stats) !== this.#ownIdentity) return false;
    return !RESOLVES_BY_HANDLE || readlinkSync(this.self) === this.path;
  }

  /** A path to the folder itself, for calls of this process. */
  get self(): string {
    return RESOLVES_BY_HANDLE ? pathOf(this.#file) : this.path;
  }

  /** Returns a path to an entry, for calls of this process while the folder is open. */
  entry(name: string): string {
    return `${this.self}/${name}`;
  }

  /** Makes the names of what was created, renamed or removed in the folder durable. */
  sync(): Promise<void> {
    return shareSync(this.#ownIdentity, () => this.#file.use(syncInBackground));
  }

  /** Adds a user, who has to close the handle too. */
  share(): FolderHandle {
    this.#users += 1;
    return this;
  }

  /** Releases the folder. To be called once by each user; the last one closes it. */
  async close(): Promise<void> {
    this.#users -= 1;
    assert(this.#users >= 0, 'each user closes a folder once');
    if (this.#users === 0) await this.#file.close();
  }

  get #ownIdentity(): string {
    this.#identity ??= identityOf(fstatSync(this.#file.number, { bigint: true }));
    return this.#identity;
  }
}

function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

function pathOf(file: Descriptor): string {
  return `/proc/self/fd/${file.number}`;
}

/** Folders that are kept open between outputs. */
const MAX_OPEN_FOLDERS = 8;

/** Time after the last use at which a folder is closed: an open one keeps its file system from being unmounted. */
const IDLE_TIMEOUT_MS = 1000;

/** Opens the folders of destinations below a base folder; the outputs of a batch share the handle of theirs. */
export class OutputFolders {
  readonly #baseDir: string;
  /** The one that was used longest ago is first. */
  readonly #open = new Map<string, FolderHandle>();
  #idle: NodeJS.Timeout | undefined;

  constructor(baseDir: string) {
    this.#baseDir = baseDir;
  }

  /** Makes the folder where it is missing, durably, and opens it. The caller closes it. */
  async open(folder: string): Promise<FolderHandle> {
    const known = this.#open.get(folder);
    this.#idle?.refresh();
    if (known?.isAt(folder)) {
      this.#open.delete(folder);
      this.#open.set(folder, known);
      return known.share();
    }
    const opened = await openOutputFolder(this.#baseDir, folder);
    this.#keep(folder, opened.share());
    return opened;
  }

  #keep(folder: string, handle: FolderHandle): void {
    this.#forget(folder);
    this.#open.set(folder, handle);
    for (const oldest of this.#open.keys()) {
      if (this.#open.size <= MAX_OPEN_FOLDERS) break;
      this.#forget(oldest);
    }
    this.#idle ??= setTimeout(() => this.#closeAll(), IDLE_TIMEOUT_MS).unref();
    this.#idle.refresh();
  }

  #closeAll(): void {
    for (const folder of [...this.#open.keys()]) this.#forget(folder);
  }

  #forget(folder: string): void {
    void this.#open.get(folder)?.close();
    this.#open.delete(folder);
  }
}

// Folders are made and opened in synchronous calls: outputs are written in workers, where nobody else waits for the
// thread, and beside a small file a trip through the pool of threads costs more than the call.

/**
 * Makes the folder of a destination below `baseDir`, durably, and opens it. Links are followed, one folder at a time, as
 * long as what was opened lies in the base; a link that leads out of it is refused.
 */
async function openOutputFolder(baseDir: string, folder: string): Promise<FolderHandle> {
  const base = await openBase(baseDir);
  let opened = base;
  try {
    for (const segment of relative(baseDir, folder).split(sep)) {
      if (segment === '') continue;
      const above = opened;
      opened = await openFolder(above, segment);
      if (above !== base) await above.close();
      if (!isSameOrInside(opened.path, base.path)) throw new AppError('OUTPUT_LEAVES_BASE', { path: folder });
    }
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  } finally {
    if (opened !== base) await base.close();
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

/** Syncs of folders that are running, and those that start when they end. */
const running = new Map<string, Promise<void>>();
const queued = new Map<string, Promise<void>>();

/** Makes the entries of a folder durable that no request chooses. Syncs of one folder are shared. */
export function syncFolder(folder: string): Promise<void> {
  return shareSync(folder, async () => {
    const opened = Descriptor.open(folder, 'r');
    try {
      await opened.use(syncInBackground);
    } finally {
      await opened.close();
    }
  });
}

/**
 * Syncs the folder that `key` stands for. Callers that ask while it is being synced share the next sync: the one that runs
 * may have started before their entry was there.
 */
function shareSync(key: string, sync: () => Promise<void>): Promise<void> {
  const next = queued.get(key);
  if (next !== undefined) return next;
  const current = running.get(key);
  return current === undefined ? startSync(key, sync) : queueSync(key, current, sync);
}

function queueSync(key: string, current: Promise<void>, sync: () => Promise<void>): Promise<void> {
  const next = current.catch(() => undefined).then(() => startSync(key, sync));
  queued.set(key, next);
  return next;
}

function startSync(key: string, sync: () => Promise<void>): Promise<void> {
  queued.delete(key);
  const started = sync().finally(() => running.delete(key));
  running.set(key, started);
  return started;
}
