import { statfs } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { type StagingKey, stagedNameOf } from '#bytes/staged-name.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { makeOutputFolder } from './output-folder.ts';
import type { OutputSink } from './output-sink.ts';
import { checkOutputSegments } from './placement.ts';
import { outputError, refuseFolder, StagedFile } from './staged-file.ts';
import { StagingJournal } from './staging-journal.ts';

/** What a file system is left with, in bytes, beside what an output needs: folders and journals grow too. */
const FREE_SPACE_MARGIN_BYTES = 1024 * 1024;

/** Outputs as files below one folder of this host: `<base_dir>/<prefix>/<name>/<leaf>`. */
export class LocalSink implements OutputSink {
  readonly #baseDir: string;
  readonly #journal: StagingJournal;

  /** `dataDir` holds the notes of what is staged; `recoverStagings` reads them. */
  constructor({ baseDir, dataDir }: { baseDir: string; dataDir: string }) {
    this.#baseDir = resolve(baseDir);
    this.#journal = new StagingJournal(dataDir);
  }

  placeFile(output: ApiOutputSpec | null, leaf: string): string {
    return join(this.#baseDir, ...checkOutputSegments(output), leaf);
  }

  async stageFile(destination: string, sizeBytes: number, key: StagingKey, signal: AbortSignal): Promise<ByteSink> {
    signal.throwIfAborted();
    const realDestination = await this.#prepare(destination, sizeBytes);
    const stagedPath = join(dirname(realDestination), stagedNameOf(destination, key));
    const note = await this.#journal.note(stagedPath, key);
    const forget = () => this.#journal.erase(note);
    try {
      return await StagedFile.create({ destination, realDestination, stagedPath, forget });
    } catch (error) {
      await forget();
      throw error;
    }
  }

  /** Makes the folder of a destination, and refuses what can be told before anything is written. */
  async #prepare(destination: string, sizeBytes: number): Promise<string> {
    try {
      const folder = await makeOutputFolder(this.#baseDir, dirname(destination));
      const realDestination = join(folder, basename(destination));
      await refuseFolder(destination, realDestination);
      await checkFreeSpace(destination, folder, sizeBytes);
      return realDestination;
    } catch (error) {
      throw outputError(destination, error);
    }
  }
}

/** File systems that do not know their size (some network file systems) report no blocks at all, and are not judged. */
async function checkFreeSpace(destination: string, folder: string, sizeBytes: number): Promise<void> {
  const { blocks, bavail, bsize } = await statfs(folder);
  const freeBytes = bavail * bsize;
  if (blocks === 0 || sizeBytes + FREE_SPACE_MARGIN_BYTES <= freeBytes) return;
  throw new AppError('OUTPUT_DISK_FULL', { path: destination, neededBytes: sizeBytes, freeBytes });
}
