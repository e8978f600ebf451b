import assert from 'node:assert/strict';
import { readdirSync, renameSync } from 'node:fs';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { isReservedName, replacedNameOf } from '#bytes/staged-name.ts';
import { AppError } from '#errors/app-error.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { stemOf } from '../output-path.ts';
import { entryAt, outputError, refuseFolder, withOutputErrors } from '../output-sink.ts';
import { DurableFile } from './durable-file.ts';
import type { FolderHandle } from './folder-handle.ts';
import { recoverReplacement, removeEntry } from './staged-entries.ts';

/** The parameters of a staged output. */
export interface Staging {
  /** The path that the caller is told, as `fileDestination` or `folderDestination` composed it. */
  readonly destination: string;
  /** The folder that it lies in, with links resolved; closed once nothing is staged any more. */
  readonly folder: FolderHandle;
  /** The names in it: of the output, and of what is staged. */
  readonly name: string;
  readonly stagedName: string;
  /** True when all of it goes through the page cache. */
  readonly isCached: boolean;
  /** Removes the note of what is staged; called when it is neither here nor on the disk any more. */
  readonly forget: () => Promise<void>;
}

/** The parameters of a staged file. */
interface FileStaging extends Staging {
  /** Notes, durably, that this file is about to take its name right after the file that is staged under another. */
  readonly noteFollowing: (firstStagedName: string) => Promise<void>;
}

/** A file that is written beside its destination under a hidden name, and renamed when it is whole. */
export class StagedFile implements ByteSink {
  readonly destination: string;
  readonly stagedPath: string;
  readonly isOnDisk = true;
  readonly #staging: FileStaging;
  readonly #file: DurableFile;
  #finished = false;

  private constructor(staging: FileStaging, file: DurableFile) {
    this.destination = staging.destination;
    this.stagedPath = staging.folder.entry(staging.stagedName);
    this.#staging = staging;
    this.#file = file;
  }

  /** Creates the staged file, in place of one that the same attempt left behind. */
  static async create(staging: FileStaging): Promise<StagedFile> {
    return await withOutputErrors(staging.destination, async () => new StagedFile(staging, await createFile(staging)));
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
    await this.#appear();
    await this.#finish();
  }

  /**
   * Sets aside what has this name, commits the first file, and gives this one its name. The journal knows both: after a
   * crash, a first file without its name means that nothing was delivered, and one with it that this file has to follow.
   * Throws `SIDECAR_OF_OTHER_FILE` where what has this name belongs to a file that stands beside it.
   */
  async commitAfter(first: ByteSink, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { folder, name, stagedName, noteFollowing } = this.#staging;
    assert(first instanceof StagedFile && first.#staging.folder.path === folder.path, 'both lie in one folder');
    const replacedName = replacedNameOf(stagedName);
    await refuseFolder(this.destination, folder.entry(name));
    await this.#translated(() => this.#refuseForeign(first.#staging.name));
    await this.#translated(async () => {
      await noteFollowing(first.#staging.stagedName);
      if (entryAt(folder.entry(name)) !== null) renameSync(folder.entry(name), folder.entry(replacedName));
    });
    try {
      await first.commit(signal);
      await this.#appear();
    } catch (error) {
      if (first.#finished) await removeEntry(folder, first.#staging.name);
      await recoverReplacement(folder, stagedName, name);
      throw error;
    }
    await removeEntry(folder, replacedName);
    await this.#finish();
  }

  /** What is there with this name was delivered with a file of the same stem: with the first one, if that is there. */
  #refuseForeign(firstName: string): void {
    const { folder, name } = this.#staging;
    if (entryAt(folder.entry(name)) === null || entryAt(folder.entry(firstName)) !== null) return;
    const isOwner = (other: string): boolean =>
      other !== name && stemOf(other) === stemOf(name) && !isReservedName(other);
    const owner = readdirSync(folder.self).find(isOwner);
    if (owner !== undefined) throw new AppError('SIDECAR_OF_OTHER_FILE', { path: this.destination, owner });
  }

  async #appear(): Promise<void> {
    const { folder, name } = this.#staging;
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
  }

  async #finish(): Promise<void> {
    const { folder, forget } = this.#staging;
    this.#finished = true;
    // The output is committed: a note that cannot be removed now is removed at the next start.
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
    return await withOutputErrors(this.destination, step);
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
