import { renameSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { outputError, refuseFolder, translated } from '../output-error.ts';
import { DurableFile } from './durable-file.ts';
import { syncFolder } from './output-folder.ts';

/** What a staged output is made with. */
export interface Staging {
  /** The path that the caller is told, as `placeFile` or `placeFolder` composed it. */
  readonly destination: string;
  /** The same place with the links of its folder resolved: where the output is renamed to. */
  readonly realDestination: string;
  readonly stagedPath: string;
  /** Whether all of it goes through the page cache. */
  readonly isCached: boolean;
  /** Called when nothing is staged any more, neither here nor on the disk. */
  readonly forget: () => Promise<void>;
}

/** A file that is written beside its destination under a hidden name, and renamed when it is whole. */
export class StagedFile implements ByteSink {
  readonly destination: string;
  readonly stagedPath: string;
  readonly isOnDisk = true;
  readonly #staging: Staging;
  readonly #file: DurableFile;

  private constructor(staging: Staging, file: DurableFile) {
    this.destination = staging.destination;
    this.stagedPath = staging.stagedPath;
    this.#staging = staging;
    this.#file = file;
  }

  /** Creates the staged file, in place of one that the same attempt left behind. */
  static async create(staging: Staging): Promise<StagedFile> {
    return await translated(staging.destination, () => new StagedFile(staging, createFile(staging)));
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
    const { realDestination, stagedPath, forget } = this.#staging;
    try {
      renameSync(stagedPath, realDestination);
    } catch (error) {
      await refuseFolder(this.destination, realDestination);
      throw outputError(this.destination, error);
    }
    try {
      await this.#translated(() => syncFolder(dirname(realDestination)));
    } catch (error) {
      await rm(realDestination, { force: true });
      throw error;
    }
    // The output is delivered: a note that cannot be removed now is removed at the next start.
    await forget().catch(() => undefined);
  }

  async discard(): Promise<void> {
    await this.#file.close();
    await rm(this.stagedPath, { force: true });
    await this.#staging.forget();
  }

  async #translated<T>(step: () => Promise<T> | T): Promise<T> {
    return await translated(this.destination, step);
  }
}

function createFile({ stagedPath, isCached }: Staging): DurableFile {
  try {
    return DurableFile.create(stagedPath, { isCached });
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
    rmSync(stagedPath, { recursive: true });
    return DurableFile.create(stagedPath, { isCached });
  }
}
