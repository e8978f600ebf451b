import { renameSync } from 'node:fs';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { outputError, refuseFolder, translated } from '../output-error.ts';
import { DurableFile } from './durable-file.ts';
import type { FolderHandle } from './folder-handle.ts';
import { removeEntry } from './remove-entry.ts';

/** What a staged output is made with. */
export interface Staging {
  /** The path that the caller is told, as `placeFile` or `placeFolder` composed it. */
  readonly destination: string;
  /** The folder that it lies in, with links resolved; closed once nothing is staged any more. */
  readonly folder: FolderHandle;
  /** The names in it: of the output, and of what is staged. */
  readonly name: string;
  readonly stagedName: string;
  /** Whether all of it goes through the page cache. */
  readonly isCached: boolean;
  /** Removes the note of what is staged; called when it is neither here nor on the disk any more. */
  readonly forget: () => Promise<void>;
}

/** A file that is written beside its destination under a hidden name, and renamed when it is whole. */
export class StagedFile implements ByteSink {
  readonly destination: string;
  readonly stagedPath: string;
  readonly isOnDisk = true;
  readonly #staging: Staging;
  readonly #file: DurableFile;
  #finished = false;

  private constructor(staging: Staging, file: DurableFile) {
    this.destination = staging.destination;
    this.stagedPath = staging.folder.entry(staging.stagedName);
    this.#staging = staging;
    this.#file = file;
  }

  /** Creates the staged file, in place of one that the same attempt left behind. */
  static async create(staging: Staging): Promise<StagedFile> {
    return await translated(staging.destination, async () => new StagedFile(staging, await createFile(staging)));
  }

  async write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    await this.#translated(() => this.#file.write(bytes, position, signal));
  }

  async seal(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#translated(() => this.#file.sync());
    await this.#file.close();
  }

  /** Once the file has its name, the signal is not looked at any more: the folder is synced or the file removed. */
  async commit(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { folder, name, forget } = this.#staging;
    try {
      renameSync(this.stagedPath, folder.entry(name));
    } catch (error) {
      await refuseFolder(this.destination, folder.entry(name));
      throw outputError(this.destination, error);
    }
    try {
      await this.#translated(() => folder.sync());
    } catch (error) {
      await removeEntry(folder, name);
      throw error;
    }
    this.#finished = true;
    // The output is delivered: a note that cannot be removed now is removed at the next start.
    await forget().catch(() => undefined);
    await folder.close();
  }

  async discard(): Promise<void> {
    if (this.#finished) return;
    this.#finished = true;
    const { folder, stagedName, forget } = this.#staging;
    await this.#file.close();
    try {
      await removeEntry(folder, stagedName);
      await forget();
    } finally {
      await folder.close();
    }
  }

  async #translated<T>(step: () => Promise<T> | T): Promise<T> {
    return await translated(this.destination, step);
  }
}

async function createFile({ folder, stagedName, isCached }: Staging): Promise<DurableFile> {
  const path = folder.entry(stagedName);
  try {
    return DurableFile.create(path, { isCached });
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
    await removeEntry(folder, stagedName);
    return DurableFile.create(path, { isCached });
  }
}
