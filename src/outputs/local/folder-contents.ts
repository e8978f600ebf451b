import type { Dirent } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { sideBySide } from '#bytes/side-by-side.ts';

/** Files of one folder that are asked for at once, and entries per read of a folder. */
const FILES_AT_ONCE = 16;
const ENTRIES_AT_ONCE = 256;

/** Files by their path relative to a folder, with their sizes in bytes. */
export type FileSizes = ReadonlyMap<string, number>;

/** A look at a folder that held nothing but certain files. */
export interface FolderLook {
  /** Times of change, in nanoseconds, by the path of each folder in it; the folder itself is the empty path. */
  readonly changedAtNs: ReadonlyMap<string, bigint>;
}

/**
 * Looks whether a folder holds nothing but files of the given paths and sizes, and the folders that they lie in; null
 * where it holds anything else. Files may be missing. Ends at the first thing that is foreign.
 */
export async function lookForForeign(folder: string, files: FileSizes): Promise<FolderLook | null> {
  const known = foldersOf(files.keys());
  const changedAtNs = new Map<string, bigint>();
  const waiting = [''];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    // Before its entries are read, so that what comes in meanwhile shows as a change.
    changedAtNs.set(path, await changeOf(join(folder, path)));
    const found: Dirent[] = [];
    for await (const entry of await opendir(join(folder, path), { bufferSize: ENTRIES_AT_ONCE })) {
      const entryPath = path === '' ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory() && known.has(entryPath)) waiting.push(entryPath);
      else if (entry.isFile() && files.has(entryPath)) found.push(entry);
      else return null;
    }
    const ours = await sideBySide(found, FILES_AT_ONCE, async ({ name }) => {
      const { size } = await lstat(join(folder, path, name));
      return size === files.get(path === '' ? name : `${path}/${name}`);
    });
    if (ours.includes(false)) return null;
  }
  return { changedAtNs };
}

/** Whether nothing was added to a folder, or removed from it, since a look at it; it may have been renamed. */
export async function isAsLookedAt(folder: string, { changedAtNs }: FolderLook): Promise<boolean> {
  for (const [path, changed] of changedAtNs) {
    if ((await changeOf(join(folder, path))) !== changed) return false;
  }
  return true;
}

/** Every folder that files lie in, below the folder that their paths are relative to; outer ones first. */
export function foldersOf(paths: Iterable<string>): Set<string> {
  const folders = new Set<string>();
  for (const path of paths) {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) folders.add(path.slice(0, at));
  }
  return folders;
}

async function changeOf(folder: string): Promise<bigint> {
  return (await lstat(folder, { bigint: true })).mtimeNs;
}
