import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { sideBySide } from '#bytes/side-by-side.ts';
import { AppError } from '#errors/app-error.ts';
import { standingAt } from '../output-error.ts';
import { innermostFirst, isPlaylist } from '../playlist-order.ts';
import { foldersOf } from './folder-contents.ts';
import type { FolderHandle } from './folder-handle.ts';
import { FolderTree } from './folder-tree.ts';
import { removeEntry } from './remove-entry.ts';

/** Files that are moved, or folders that are synced, at once. */
const MOVES_AT_ONCE = 16;

interface Merge {
  readonly destination: string;
  readonly folder: FolderHandle;
  readonly name: string;
  readonly stagedName: string;
  readonly staged: FolderTree;
  readonly paths: readonly string[];
}

/**
 * Moves the files of a staged folder into one that holds foreign files too, each by one rename. What cannot be done is
 * refused before the first one. Media is durable there before the first playlist names it.
 */
export async function mergeFolder(merge: Merge): Promise<void> {
  const { folder, name, stagedName, staged, paths } = merge;
  await refuseObstacles(merge);
  const standing = new FolderTree(folder.enter(name));
  try {
    await makeFolders(standing, foldersOf(paths));
    const media = paths.filter((path) => !isPlaylist(path));
    await sideBySide(media, MOVES_AT_ONCE, (path) => move(path, staged, standing));
    await syncAll(standing, media);
    const playlists = paths.filter(isPlaylist);
    for (const path of playlists.sort(innermostFirst)) await move(path, staged, standing);
    await syncAll(standing, playlists);
  } finally {
    await standing.close();
  }
  // Only empty folders are left of it; they are removed at the next start if they cannot be now.
  await removeEntry(folder, stagedName).catch(() => undefined);
}

/** Where a folder is needed there must be none or a real one; where a file is needed, anything but a folder. */
async function refuseObstacles({ destination, folder, name, paths }: Merge): Promise<void> {
  const root = folder.entry(name);
  for (const inner of foldersOf(paths)) {
    const standing = standingAt(join(root, inner));
    const isFolder = standing === null || standing.isDirectory();
    if (!isFolder) throw new AppError('OUTPUT_IS_FILE', { path: join(destination, inner) });
  }
  await sideBySide(paths, MOVES_AT_ONCE, async (path) => {
    const standing = standingAt(join(root, path));
    if (standing?.isDirectory()) throw new AppError('OUTPUT_IS_FOLDER', { path: join(destination, path) });
  });
}

async function move(path: string, from: FolderTree, to: FolderTree): Promise<void> {
  await from.at(path, (source) => to.at(path, (target) => rename(source, target)));
}

async function makeFolders(tree: FolderTree, folders: Iterable<string>): Promise<void> {
  for (const folder of folders) {
    if (await tree.make(folder)) await tree.at(folder, (_, above) => above.sync());
  }
}

async function syncAll(tree: FolderTree, paths: readonly string[]): Promise<void> {
  const folders = new Set(paths.map((path) => path.slice(0, Math.max(path.lastIndexOf('/'), 0))));
  await sideBySide([...folders], MOVES_AT_ONCE, (folder) => tree.in(folder, (handle) => handle.sync()));
}
