import { createHash, randomUUID } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { lstat, mkdir, opendir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { syncFolder } from '#bytes/file-source.ts';
import { folderOf } from '#bytes/path-overlap.ts';
import { replacedNameOf } from '#bytes/staged-name.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { entryAt, innermostPlaylistFirst, isPlaylist, refuseFile } from '../output-sink.ts';
import type { FolderHandle } from './folder-handle.ts';
import { FolderTree } from './folder-tree.ts';
import { recoverReplacement, removeEntry } from './staged-entries.ts';

/** Attempts at a commit when another process changes the same destination meanwhile. */
const MAX_TRIES = 5;

interface FolderCommit {
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
  /** Treats any folder at the destination as a publication that this service committed. */
  readonly replacesAny: boolean;
  readonly noteReplacement: () => Promise<void>;
}

/**
 * Commits a staged folder to its destination, durably. Readers meanwhile see one of these, by what exists there:
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

/** The snapshot of a folder whose changes do not matter. */
const ANY_STATE: FolderSnapshot = new Map();

/** `foreign` and `changed` (while it was tried): nothing has happened. */
type CommitOutcome = 'committed' | 'foreign' | 'changed';

/** Error codes of a rename when another process has just created or removed the destination. */
const RACED = new Set(['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR']);

/** Commits the folder to a free destination, or in place of a publication of this service. */
async function commitWhole(commit: FolderCommit): Promise<CommitOutcome> {
  const { destination, folder, name, records, replacesAny } = commit;
  await refuseFile(destination, folder.entry(name));
  try {
    if (entryAt(folder.entry(name)) === null) return await moveIntoPlace(commit);
    const own = replacesAny ? ANY_STATE : await records.snapshotIfOwn(folder, name);
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

/**
 * Moves the files of a staged folder into one that holds foreign files too, each by one rename. A move that cannot be done is
 * refused before the first one. Media is durable there before the first playlist names it.
 */
async function mergeFolder(commit: FolderCommit): Promise<void> {
  const { folder, name, stagedName, staged, paths } = commit;
  await refuseConflicts(commit);
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
async function refuseConflicts({ destination, folder, name, paths }: FolderCommit): Promise<void> {
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
  const folders = new Set(paths.map(folderOf));
  await mapConcurrent([...folders], MAX_CONCURRENT_MOVES, (folder) => tree.in(folder, (handle) => handle.sync()));
}

/**
 * Records of the folders that this service committed, by destination. They tell a publication of this service from files
 * of others. `deliveries/<hash of the destination>/` in the folder of records holds a record for each attempt at a commit:
 * a list of files and sizes, written before the commit. A record of a commit that never happened does no harm, because a
 * record counts only when it matches the folder. A commit removes the older records of its destination.
 */
export class CommittedFolders {
  readonly #folder: string;

  constructor(recordsDir: string) {
    this.#folder = join(recordsDir, 'deliveries');
  }

  /** Records, durably, what is about to be committed to a destination. Returns the record. */
  async add(realDestination: string, files: FileSizes): Promise<string> {
    const folder = this.#folderOf(realDestination);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const record = join(folder, `${randomUUID()}.json`);
    const contents = JSON.stringify({ place: realDestination, files: [...files] });
    await writeFile(record, contents, { mode: 0o600, flush: true });
    const recordsDir = dirname(this.#folder);
    for (const made of [folder, this.#folder, recordsDir, dirname(recordsDir)]) await syncFolder(made);
    return record;
  }

  async remove(record: string): Promise<void> {
    await rm(record, { force: true });
  }

  /** Removes all records of the record's destination but this one. */
  async keepOnly(record: string): Promise<void> {
    for (const name of await readdir(dirname(record))) {
      if (name !== basename(record)) await rm(join(dirname(record), name), { force: true });
    }
  }

  /** Returns a snapshot of a folder that holds nothing but what this service committed there; null for any other folder. */
  async snapshotIfOwn(folder: FolderHandle, name: string): Promise<FolderSnapshot | null> {
    for (const files of [NO_FILES, ...(await this.#recordsOf(join(folder.path, name)))]) {
      const look = await snapshotUnlessForeign(folder.entry(name), files);
      if (look !== null) return look;
    }
    return null;
  }

  async #recordsOf(realDestination: string): Promise<FileSizes[]> {
    const folder = this.#folderOf(realDestination);
    const names = await readdir(folder).catch((error: unknown) => {
      if (systemErrorCode(error) === 'ENOENT') return [];
      throw error;
    });
    const records = await Promise.all(names.map((name) => readRecord(join(folder, name))));
    return records.filter((files) => files !== null);
  }

  #folderOf(realDestination: string): string {
    return join(this.#folder, createHash('sha256').update(realDestination).digest('hex').slice(0, 32));
  }
}

/** An empty folder holds nothing that is anybody's. */
const NO_FILES: FileSizes = new Map();

/** Reads the files of a record; returns null for one that was torn at a power cut, or removed meanwhile. */
async function readRecord(path: string): Promise<FileSizes | null> {
  try {
    const { files } = JSON.parse(await readFile(path, 'utf8')) as { files: [string, number][] };
    return new Map(files);
  } catch (error) {
    if (error instanceof SyntaxError || systemErrorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Concurrent calls for the files of one folder, and entries per read of a folder. */
const MAX_CONCURRENT_FILES = 16;
const ENTRIES_BATCH_SIZE = 256;

/** Files by their path relative to a folder, with their sizes in bytes. */
type FileSizes = ReadonlyMap<string, number>;

/**
 * A snapshot of a folder that holds nothing but known files: the times of change, in nanoseconds, by the path of each folder
 * in it; the folder itself is the empty path.
 */
type FolderSnapshot = ReadonlyMap<string, bigint>;

/**
 * Returns a snapshot of a folder that holds nothing but files of the given paths and sizes, and the folders above them;
 * null for a folder with anything else in it. Files may be missing. Stops at the first foreign entry.
 */
export async function snapshotUnlessForeign(folder: string, files: FileSizes): Promise<FolderSnapshot | null> {
  const known = foldersOf(files.keys());
  const changedAtNs = new Map<string, bigint>();
  const waiting = [''];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    // Before its entries are read, so that what comes in meanwhile shows as a change.
    changedAtNs.set(path, await changeOf(join(folder, path)));
    const found: Dirent[] = [];
    for await (const entry of await opendir(join(folder, path), { bufferSize: ENTRIES_BATCH_SIZE })) {
      const entryPath = path === '' ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory() && known.has(entryPath)) waiting.push(entryPath);
      else if (entry.isFile() && files.has(entryPath)) found.push(entry);
      else return null;
    }
    const ours = await mapConcurrent(found, MAX_CONCURRENT_FILES, async ({ name }) => {
      const { size } = await lstat(join(folder, path, name));
      return size === files.get(path === '' ? name : `${path}/${name}`);
    });
    if (ours.includes(false)) return null;
  }
  return changedAtNs;
}

/** Tells whether nothing was added to a folder or removed from it since a snapshot; it may have been renamed. */
export async function isUnchangedSince(folder: string, snapshot: FolderSnapshot): Promise<boolean> {
  for (const [path, changed] of snapshot) {
    if ((await changeOf(join(folder, path))) !== changed) return false;
  }
  return true;
}

/** Lists the folders above files, below the folder that their paths are relative to; outer ones first. */
function foldersOf(paths: Iterable<string>): Set<string> {
  const folders = new Set<string>();
  for (const path of paths) {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) folders.add(path.slice(0, at));
  }
  return folders;
}

async function changeOf(folder: string): Promise<bigint> {
  return (await lstat(folder, { bigint: true })).mtimeNs;
}
