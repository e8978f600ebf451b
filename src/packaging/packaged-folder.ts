import { statSync } from 'node:fs';
import { readdir, rm, truncate } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import { openOwnFile } from '#bytes/file-source.ts';
import type { FolderFile, SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';

/** Files that are removed concurrently. */
const MAX_CONCURRENT_REMOVALS = 16;

/** Publication that is packaged into a folder of this host, readable as a source folder. */
export class PackagedFolder implements SourceFolder {
  readonly name: string;
  /** Path of the folder that holds its files. */
  readonly localPath: string;
  readonly #sizes = new Map<string, number>();

  constructor(name: string, localPath: string) {
    this.name = name;
    this.localPath = localPath;
  }

  /** Files that are complete so far, in the order of their paths; all files after `complete`. */
  get files(): readonly FolderFile[] {
    return [...this.#sizes.keys()].sort().map((path) => ({ path, sizeBytes: this.sizeOf(path) }));
  }

  /** Returns the size of a complete file, in bytes. */
  sizeOf(path: string): number {
    return this.#sizes.get(path) ?? 0;
  }

  /** Adds a file that is complete. */
  add(path: string): void {
    this.#sizes.set(path, statSync(join(this.localPath, path)).size);
  }

  /** Adds all other files of the folder, once nothing is written any more. */
  async complete(): Promise<void> {
    const entries = await readdir(this.localPath, { recursive: true, withFileTypes: true });
    const paths = entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(this.localPath, join(parentPath, name)));
    for (const path of paths) if (!this.#sizes.has(path)) this.add(path);
  }

  /** Deletes the files whose paths match. */
  async remove(paths: RegExp): Promise<void> {
    const removed = [...this.#sizes.keys()].filter((path) => paths.test(path));
    for (const path of removed) this.#sizes.delete(path);
    await mapConcurrent(removed, MAX_CONCURRENT_REMOVALS, (path) => rm(join(this.localPath, path)));
  }

  /**
   * Truncates a file that nobody reads any more, to free its space. It stays listed, because it is part of the publication,
   * and is not deleted: ext4 without a journal is slow to create files after deletions.
   */
  async truncate(path: string): Promise<void> {
    await truncate(join(this.localPath, path));
  }

  async open(path: string, signal: AbortSignal): Promise<ByteSource> {
    signal.throwIfAborted();
    if (!this.#sizes.has(path)) throw new AppError('SOURCE_NOT_FOUND', { path });
    return await openOwnFile(join(this.localPath, path), basename(path));
  }
}
