import { existsSync, fsync, lstatSync, mkdirSync, readlinkSync } from 'node:fs';
import { dirname, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { Descriptor } from '#bytes/descriptor.ts';
import { isSameOrInside } from '#bytes/real-path.ts';
import { AppError } from '#errors/app-error.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { FolderHandle } from './folder-handle.ts';
import { shareSync } from './shared-sync.ts';

const syncBehind = promisify(fsync);

// Folders are made and opened in synchronous calls: outputs are written in workers, where nobody else waits for the
// thread, and beside a small file a trip through the pool of threads costs more than the call.

/**
 * Makes the folder of a destination below `baseDir`, durably, and opens it. Links are followed, one folder at a time, as
 * long as what was opened lies in the base; a link that leads out of it is refused.
 */
export async function openOutputFolder(baseDir: string, folder: string): Promise<FolderHandle> {
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

/** Makes the entries of a folder durable that no request chooses. Syncs of one folder are shared. */
export function syncFolder(folder: string): Promise<void> {
  return shareSync(folder, async () => {
    const opened = Descriptor.open(folder, 'r');
    try {
      await opened.use(syncBehind);
    } finally {
      await opened.close();
    }
  });
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

/** The first folder that had to be made, if any. */
function makeFolders(baseDir: string): string | undefined {
  try {
    return mkdirSync(baseDir, { recursive: true });
  } catch (error) {
    refuseDangling(baseDir, baseDir);
    throw error;
  }
}

/** A link that leads nowhere stands in the way of a folder, and yet the system says only that there is no such folder. */
function refuseDangling(path: string, shownPath: string): void {
  if (existsSync(path) || !lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  throw new AppError('OUTPUT_LINK_DANGLING', { path: shownPath, target: readlinkSync(path) });
}
