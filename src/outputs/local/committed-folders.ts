import { createHash, randomUUID } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { lstat, mkdir, open, opendir, readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { syncFolder } from '../staging/sync-folder.ts';
import type { FolderHandle } from './folder-handle.ts';

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
    await writeDurably(record, JSON.stringify({ place: realDestination, files: [...files] }));
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

async function writeDurably(path: string, text: string): Promise<void> {
  const handle = await open(path, 'w', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

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
export type FileSizes = ReadonlyMap<string, number>;

/** A snapshot of a folder that holds nothing but known files. */
export interface FolderSnapshot {
  /** Times of change, in nanoseconds, by the path of each folder in it; the folder itself is the empty path. */
  readonly changedAtNs: ReadonlyMap<string, bigint>;
}

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
  return { changedAtNs };
}

/** Tells whether nothing was added to a folder or removed from it since a snapshot; it may have been renamed. */
export async function isUnchangedSince(folder: string, { changedAtNs }: FolderSnapshot): Promise<boolean> {
  for (const [path, changed] of changedAtNs) {
    if ((await changeOf(join(folder, path))) !== changed) return false;
  }
  return true;
}

/** Lists the folders above files, below the folder that their paths are relative to; outer ones first. */
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
