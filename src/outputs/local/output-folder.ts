import { existsSync, fsync, lstatSync, mkdirSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { Descriptor } from '#bytes/descriptor.ts';
import { isSameOrInside } from '#bytes/real-path.ts';
import { AppError } from '#errors/app-error.ts';
import { systemErrorCode } from '#errors/system-problem.ts';

const syncBehind = promisify(fsync);

// Folders are made and resolved in synchronous calls: outputs are written in workers, where nobody else waits for the
// thread, and beside a small file a trip through the pool of threads costs more than the call.

/**
 * Makes the folder of a destination below `baseDir`, durably, and returns its path with links resolved. Refuses a folder
 * that a link takes out of the base.
 */
export async function makeOutputFolder(baseDir: string, folder: string): Promise<string> {
  let real = await makeBase(baseDir);
  const realBase = real;
  for (const segment of relative(baseDir, folder).split(sep)) {
    if (segment === '') continue;
    real = await makeFolder(join(real, segment));
    if (!isSameOrInside(real, realBase)) throw new AppError('OUTPUT_LEAVES_BASE', { path: folder });
  }
  return real;
}

/** Syncs of folders that are under way, and those that begin when they end. */
const syncing = new Map<string, Promise<void>>();
const following = new Map<string, Promise<void>>();

/**
 * Makes a folder's entries durable: the names of files that were created, renamed or removed in it. Whoever asks while a
 * folder is being synced shares the next sync: the one under way may have begun before the name was there.
 */
export function syncFolder(folder: string): Promise<void> {
  const next = following.get(folder);
  if (next !== undefined) return next;
  const current = syncing.get(folder);
  return current === undefined ? startSync(folder) : followSync(folder, current);
}

function followSync(folder: string, current: Promise<void>): Promise<void> {
  const next = current.catch(() => undefined).then(() => startSync(folder));
  following.set(folder, next);
  return next;
}

function startSync(folder: string): Promise<void> {
  following.delete(folder);
  const sync = syncNow(folder).finally(() => syncing.delete(folder));
  syncing.set(folder, sync);
  return sync;
}

async function syncNow(folder: string): Promise<void> {
  const opened = Descriptor.open(folder, 'r');
  try {
    await opened.use(syncBehind);
  } finally {
    await opened.close();
  }
}

async function makeBase(baseDir: string): Promise<string> {
  const firstMade = makeFolders(baseDir);
  if (firstMade !== undefined) {
    for (let made = baseDir; made.length >= firstMade.length; made = dirname(made)) await syncFolder(dirname(made));
  }
  return realpathSync.native(baseDir);
}

async function makeFolder(folder: string): Promise<string> {
  // Asked first, because an error for each file of a batch would cost more than all else that is done here.
  if (!existsSync(folder)) await makeMissingFolder(folder);
  return realpathSync.native(folder);
}

async function makeMissingFolder(folder: string): Promise<void> {
  try {
    mkdirSync(folder);
    await syncFolder(dirname(folder));
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
    refuseDangling(folder);
  }
}

/** The first folder that had to be made, if any. */
function makeFolders(baseDir: string): string | undefined {
  try {
    return mkdirSync(baseDir, { recursive: true });
  } catch (error) {
    refuseDangling(baseDir);
    throw error;
  }
}

/** A link that leads nowhere stands in the way of a folder, and yet the system says only that there is no such folder. */
function refuseDangling(folder: string): void {
  if (existsSync(folder) || !lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  throw new AppError('OUTPUT_LINK_DANGLING', { path: folder, target: readlinkSync(folder) });
}
