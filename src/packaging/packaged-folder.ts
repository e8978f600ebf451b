import { rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import { openOwnFile } from '#bytes/file-source.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { FolderFile, SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';

/** Files that are asked for at once. */
const FILES_AT_ONCE = 16;

/** A publication that was packaged into a folder of this host, as a folder that can be read like any input. */
export class PackagedFolder implements SourceFolder {
  readonly name: string;
  readonly files: readonly FolderFile[];
  /** Where its files lie. */
  readonly localPath: string;
  readonly #paths: ReadonlySet<string>;

  private constructor(name: string, localPath: string, files: readonly FolderFile[]) {
    this.name = name;
    this.localPath = localPath;
    this.files = files;
    this.#paths = new Set(files.map(({ path }) => path));
  }

  /** `paths` are relative to `localPath`. */
  static async open(name: string, localPath: string, paths: readonly string[]): Promise<PackagedFolder> {
    const files = await sideBySide(paths, FILES_AT_ONCE, async (path) => ({
      path,
      sizeBytes: (await stat(join(localPath, path))).size,
    }));
    return new PackagedFolder(name, localPath, files);
  }

  /** The same folder after files have been removed from it, and from the disk. */
  async without(paths: RegExp): Promise<PackagedFolder> {
    const removed = this.files.filter(({ path }) => paths.test(path));
    await sideBySide(removed, FILES_AT_ONCE, ({ path }) => rm(join(this.localPath, path)));
    const kept = this.files.filter(({ path }) => !paths.test(path));
    return new PackagedFolder(this.name, this.localPath, kept);
  }

  async open(path: string, signal: AbortSignal): Promise<ByteSource> {
    signal.throwIfAborted();
    if (!this.#paths.has(path)) throw new AppError('SOURCE_NOT_FOUND', { path });
    return await openOwnFile(join(this.localPath, path), basename(path));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
