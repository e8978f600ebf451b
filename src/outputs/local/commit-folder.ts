import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { replacedNameOf } from '#bytes/staged-name.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { entryAt, refuseFile } from '../staging/output-error.ts';
import { innermostPlaylistFirst, isPlaylist } from '../staging/playlist-order.ts';
import type { CommittedFolders } from './committed-folders.ts';
import { type FolderSnapshot, foldersOf, isUnchangedSince } from './committed-folders.ts';
import type { FolderHandle } from './folder-handle.ts';
import { FolderTree } from './folder-tree.ts';
import { recoverReplacement, removeEntry } from './staging-cleanup.ts';

/** Attempts at a commit when another process changes the same destination meanwhile. */
const MAX_TRIES = 5;

export interface FolderCommit {
  /** The destination as the caller is told it. */
  readonly destination: string;
  /** The folder that the destination lies in, and its name there. */
  readonly folder: FolderHandle;
  readonly name: string;
  /** A sealed folder beside the destination, on the same file system: its name, and what is in it. */
  readonly stagedName: string;
  readonly staged: FolderTree;
  /** Every file of the staged folder, relative to it. */
  readonly paths: readonly string[];
  readonly records: CommittedFolders;
  readonly noteReplacement: () => Promise<void>;
}

/**
 * Commits a staged folder to its destination, durably. What readers see meanwhile depends on what exists there:
 * - nothing, or an empty folder: the publication appears whole, in one rename;
 * - a publication that this service committed: between two renames there is nothing, before them the old publication, after
 *   them the new one. A reader who has files open keeps reading the old ones;
 * - a folder with anything else in it: new files appear beside old ones, each whole, playlists last, so that a player that
 *   reads a playlist finds the files it names. After a failure midway, or a kill, files of both publications may exist
 *   until the commit is repeated; nothing foreign is touched.
 * Throws `OUTPUT_IS_FILE` or `OUTPUT_IS_FOLDER` for entries that must not be replaced, and the system's errors.
 */
export async function commitFolder(commit: FolderCommit): Promise<void> {
  for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
    const outcome = await commitWhole(commit);
    if (outcome === 'committed') return;
    if (outcome === 'foreign') break;
  }
  await mergeFolder(commit);
}

/** `foreign` and `changed` (while it was tried): nothing has happened. */
type CommitOutcome = 'committed' | 'foreign' | 'changed';

/** Error codes of a rename when another process has just created or removed the destination. */
const RACED = new Set(['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR']);

/** Commits the folder to a free destination, or in place of a publication of this service. */
async function commitWhole(commit: FolderCommit): Promise<CommitOutcome> {
  const { destination, folder, name, records } = commit;
  await refuseFile(destination, folder.entry(name));
  try {
    if (entryAt(folder.entry(name)) === null) return await moveIntoPlace(commit);
    const own = await records.snapshotIfOwn(folder, name);
    return own === null ? 'foreign' : await replaceOwn(commit, own);
  } catch (error) {
    if (RACED.has(systemErrorCode(error) ?? '')) return 'changed';
    throw error;
  }
}

async function moveIntoPlace({ folder, stagedName, name }: FolderCommit): Promise<CommitOutcome> {
  await rename(folder.entry(stagedName), folder.entry(name));
  try {
    await folder.sync();
  } catch (error) {
    await rename(folder.entry(name), folder.entry(stagedName));
    throw error;
  }
  return 'committed';
}

/** Replaces a publication by two renames, recorded before the first so that recovery can finish them. */
async function replaceOwn(
  { folder, stagedName, name, noteReplacement }: FolderCommit,
  own: FolderSnapshot,
): Promise<CommitOutcome> {
  await noteReplacement();
  const replacedName = replacedNameOf(stagedName);
  try {
    await rename(folder.entry(name), folder.entry(replacedName));
    if (!(await isUnchangedSince(folder.entry(replacedName), own))) {
      await recoverReplacement(folder, stagedName, name);
      return 'changed';
    }
    await rename(folder.entry(stagedName), folder.entry(name));
    await folder.sync();
  } catch (error) {
    await recoverReplacement(folder, stagedName, name);
    throw error;
  }
  // The new publication is committed: an old one that cannot be removed now is removed at the next start.
  await removeEntry(folder, replacedName).catch(() => undefined);
  return 'committed';
}

/** Files that are moved, or folders that are synced, at once. */
const MAX_CONCURRENT_MOVES = 16;

interface FolderMerge {
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
export async function mergeFolder(merge: FolderMerge): Promise<void> {
  const { folder, name, stagedName, staged, paths } = merge;
  await refuseConflicts(merge);
  const existing = new FolderTree(folder.enter(name));
  try {
    await makeFolders(existing, foldersOf(paths));
    const media = paths.filter((path) => !isPlaylist(path));
    await mapConcurrent(media, MAX_CONCURRENT_MOVES, (path) => move(path, staged, existing));
    await syncAll(existing, media);
    const playlists = paths.filter(isPlaylist);
    for (const path of playlists.sort(innermostPlaylistFirst)) await move(path, staged, existing);
    await syncAll(existing, playlists);
  } finally {
    await existing.close();
  }
  // Only empty folders are left of it; they are removed at the next start if they cannot be now.
  await removeEntry(folder, stagedName).catch(() => undefined);
}

/** Throws `OUTPUT_IS_FILE` when a needed folder is a file or link, `OUTPUT_IS_FOLDER` when a needed file is a folder. */
async function refuseConflicts({ destination, folder, name, paths }: FolderMerge): Promise<void> {
  const root = folder.entry(name);
  for (const inner of foldersOf(paths)) {
    const existing = entryAt(join(root, inner));
    const isFolder = existing === null || existing.isDirectory();
    if (!isFolder) throw new AppError('OUTPUT_IS_FILE', { path: join(destination, inner) });
  }
  await mapConcurrent(paths, MAX_CONCURRENT_MOVES, async (path) => {
    const existing = entryAt(join(root, path));
    if (existing?.isDirectory()) throw new AppError('OUTPUT_IS_FOLDER', { path: join(destination, path) });
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
  await mapConcurrent([...folders], MAX_CONCURRENT_MOVES, (folder) => tree.in(folder, (handle) => handle.sync()));
}
