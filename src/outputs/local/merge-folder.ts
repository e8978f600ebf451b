import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sideBySide } from '#bytes/side-by-side.ts';
import { AppError } from '#errors/app-error.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { standingAt } from '../output-error.ts';
import { innermostFirst, isPlaylist } from '../playlist-order.ts';
import { foldersOf } from './folder-contents.ts';
import { syncFolder } from './output-folder.ts';

/** Files that are moved, or folders that are synced, at once. */
const MOVES_AT_ONCE = 16;

interface Merge {
  readonly destination: string;
  readonly realDestination: string;
  readonly stagedPath: string;
  readonly paths: readonly string[];
}

/**
 * Moves the files of a staged folder into one that holds foreign files too, each by one rename. What cannot be done is
 * refused before the first one. Media is durable there before the first playlist names it.
 */
export async function mergeFolder(merge: Merge): Promise<void> {
  const { stagedPath, realDestination, paths } = merge;
  await refuseObstacles(merge);
  const playlists = paths.filter(isPlaylist);
  await makeFolders(realDestination, foldersOf(paths));
  const media = paths.filter((path) => !isPlaylist(path));
  await sideBySide(media, MOVES_AT_ONCE, (path) => rename(join(stagedPath, path), join(realDestination, path)));
  await syncAll(realDestination, media);
  for (const path of playlists.sort(innermostFirst)) await rename(join(stagedPath, path), join(realDestination, path));
  await syncAll(realDestination, playlists);
  // Only empty folders are left of it; they are removed at the next start if they cannot be now.
  await rm(stagedPath, { force: true, recursive: true }).catch(() => undefined);
}

/** Where a folder is needed there must be none or a real one; where a file is needed, anything but a folder. */
async function refuseObstacles({ destination, realDestination, paths }: Merge): Promise<void> {
  for (const folder of foldersOf(paths)) {
    const standing = standingAt(join(realDestination, folder));
    const isFolder = standing === null || standing.isDirectory();
    if (!isFolder) throw new AppError('OUTPUT_IS_FILE', { path: join(destination, folder) });
  }
  await sideBySide(paths, MOVES_AT_ONCE, async (path) => {
    const standing = standingAt(join(realDestination, path));
    if (standing?.isDirectory()) throw new AppError('OUTPUT_IS_FOLDER', { path: join(destination, path) });
  });
}

async function makeFolders(root: string, folders: Iterable<string>): Promise<void> {
  for (const folder of folders) {
    try {
      await mkdir(join(root, folder));
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
      continue;
    }
    await syncFolder(dirname(join(root, folder)));
  }
}

async function syncAll(root: string, paths: readonly string[]): Promise<void> {
  const folders = new Set(paths.map((path) => dirname(join(root, path))));
  await sideBySide([...folders], MOVES_AT_ONCE, syncFolder);
}
