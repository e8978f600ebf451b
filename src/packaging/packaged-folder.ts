import { statSync } from 'node:fs';
import { readdir, rm, truncate } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import { openOwnFile } from '#bytes/file-source.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { FolderFile, SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';

/** Files that are removed at once. */
const FILES_AT_ONCE = 16;

/** A publication that is packaged into a folder of this host, as a folder that can be read like any input. */
export class PackagedFolder implements SourceFolder {
  readonly name: string;
  /** Where its files lie. */
  readonly localPath: string;
  readonly #sizes = new Map<string, number>();

  constructor(name: string, localPath: string) {
    this.name = name;
    this.localPath = localPath;
  }

  /** What is whole so far, in the order of the paths; all files after `complete`. */
  get files(): readonly FolderFile[] {
    return [...this.#sizes.keys()].sort().map((path) => ({ path, sizeBytes: this.sizeOf(path) }));
  }

  /** The size of a file that is whole, in bytes. */
  sizeOf(path: string): number {
    return this.#sizes.get(path) ?? 0;
  }

  /** Takes a file that is whole. */
  add(path: string): void {
    this.#sizes.set(path, statSync(join(this.localPath, path)).size);
  }

  /** Takes everything else that lies there, once nothing is written any more. */
  async complete(): Promise<void> {
    const entries = await readdir(this.localPath, { recursive: true, withFileTypes: true });
    const paths = entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(this.localPath, join(parentPath, name)));
    for (const path of paths) if (!this.#sizes.has(path)) this.add(path);
  }

  /** Takes files out of the publication. */
  async remove(paths: RegExp): Promise<void> {
    const removed = [...this.#sizes.keys()].filter((path) => paths.test(path));
    for (const path of removed) this.#sizes.delete(path);
    await sideBySide(removed, FILES_AT_ONCE, (path) => rm(join(this.localPath, path)));
  }

  /**
   * Gives back the room of a file that nobody reads any more. It stays listed, for it is part of the publication, and there:
   * ext4 without a journal is slow to create files after others were deleted.
   */
  async letGo(path: string): Promise<void> {
    await truncate(join(this.localPath, path));
  }

  async open(path: string, signal: AbortSignal): Promise<ByteSource> {
    signal.throwIfAborted();
    if (!this.#sizes.has(path)) throw new AppError('SOURCE_NOT_FOUND', { path });
    return await openOwnFile(join(this.localPath, path), basename(path));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
