import { statfsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { isSameOrInside, nearestRealPath } from '#bytes/real-path.ts';
import { type StagingKey, stagedNameOf } from '#bytes/staged-name.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import type { FolderSink } from '../folder-sink.ts';
import { refuseFile, refuseFolder, translated } from '../output-error.ts';
import type { OutputSink } from '../output-sink.ts';
import { checkOutputSegments, type Naming } from '../placement.ts';
import { clearEarlierAttempts } from './clear-earlier-attempts.ts';
import { DeliveryRecords } from './delivery-records.ts';
import type { FolderHandle } from './folder-handle.ts';
import { OutputFolders } from './output-folders.ts';
import { StagedFile, type Staging } from './staged-file.ts';
import { StagedFolder } from './staged-folder.ts';
import { StagingJournal } from './staging-journal.ts';
import { stagingSecretIn } from './staging-secret.ts';

/** What a file system is left with, in bytes, beside what an output needs: folders and journals grow too. */
const FREE_SPACE_MARGIN_BYTES = 1024 * 1024;

/**
 * Less goes through the page cache: nobody waits for the disk then before the next file is begun, and it is likely to be
 * read while it is still there.
 */
const SMALLEST_DIRECT_OUTPUT_BYTES = 16 * 1024 * 1024;

/** What is read back goes through the page cache where it takes no more of the memory that is to be had. */
const LARGEST_CACHED_SHARE = 0.5;

/** Rejects where what stands at a destination is not to be replaced by the output. */
type RefuseStanding = (destination: string, path: string) => Promise<void>;

/** Where local outputs go, and what is noted about them. */
export interface LocalPlaces {
  readonly baseDir: string;
  /** This node's own. */
  readonly dataDir: string;
  /** Where nodes share it, each knows what the others delivered; `dataDir` unless given. */
  readonly recordsDir?: string;
  /** What no output may be, hold or lie inside; `dataDir` and `recordsDir` unless given. They need not exist. */
  readonly ownPlaces?: readonly string[];
  readonly naming?: Naming;
  /** Whether outputs are read back once they are written; not, unless given. */
  readonly readBack?: boolean;
}

/** Outputs as files and folders below one folder of this host: `<base_dir>/<prefix>/<name>/<leaf>`. */
export class LocalSink implements OutputSink {
  readonly #baseDir: string;
  readonly #folders: OutputFolders;
  readonly #naming: Naming;
  readonly #readBack: boolean;
  readonly #journal: StagingJournal;
  readonly #records: DeliveryRecords;
  readonly #recordsDir: string;
  #secret: Buffer | undefined;
  readonly #ownPlaces: readonly string[];
  #realOwnPlaces: Promise<string[]> | null = null;

  /**
   * `dataDir` holds the notes of what is staged, which `recoverStagings` reads; `recordsDir` the records of delivered
   * folders, and the secret that the names of stagings are made with.
   */
  constructor({
    baseDir,
    dataDir,
    recordsDir = dataDir,
    ownPlaces = [dataDir, recordsDir],
    naming = 'derived',
    readBack = false,
  }: LocalPlaces) {
    this.#baseDir = resolve(baseDir);
    this.#folders = new OutputFolders(this.#baseDir);
    this.#naming = naming;
    this.#readBack = readBack;
    this.#journal = new StagingJournal(dataDir);
    this.#records = new DeliveryRecords(recordsDir);
    this.#recordsDir = recordsDir;
    this.#ownPlaces = ownPlaces;
  }

  namingOf(): Naming {
    return this.#naming;
  }

  placeFile(output: ApiOutputSpec | null, leaf: string): string {
    return join(this.#baseDir, ...checkOutputSegments(output), leaf);
  }

  placeFolder(output: ApiOutputSpec | null, leaf: string): string {
    return this.placeFile(output, leaf);
  }

  async stageFile(destination: string, sizeBytes: number, key: StagingKey, signal: AbortSignal): Promise<ByteSink> {
    return await this.#stage(destination, sizeBytes, key, signal, refuseFolder, (staging) =>
      StagedFile.create(staging),
    );
  }

  async stageFolder(destination: string, sizeBytes: number, key: StagingKey, signal: AbortSignal): Promise<FolderSink> {
    return await this.#stage(destination, sizeBytes, key, signal, refuseFile, (staging, note) =>
      StagedFolder.create({
        ...staging,
        records: this.#records,
        noteReplacement: () => this.#journal.noteReplacement(note, join(staging.folder.path, staging.name)),
      }),
    );
  }

  /** Notes what is about to be staged and has it created. `refuse` rejects what stands at the destination already. */
  async #stage<Sink>(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    signal: AbortSignal,
    refuse: RefuseStanding,
    create: (staging: Staging, note: string) => Promise<Sink>,
  ): Promise<Sink> {
    signal.throwIfAborted();
    const name = basename(destination);
    const folder = await this.#prepare(destination, sizeBytes, key, refuse);
    try {
      const stagedName = stagedNameOf(destination, key, this.#stagingSecret);
      const note = await this.#journal.note(join(folder.path, stagedName), key);
      const forget = () => this.#journal.erase(note);
      const isCached = this.#isCached(sizeBytes);
      try {
        return await create({ destination, folder, name, stagedName, isCached, forget }, note);
      } catch (error) {
        await forget();
        throw error;
      }
    } catch (error) {
      await folder.close();
      throw error;
    }
  }

  get #stagingSecret(): Buffer {
    this.#secret ??= stagingSecretIn(this.#recordsDir);
    return this.#secret;
  }

  #isCached(sizeBytes: number): boolean {
    if (sizeBytes < SMALLEST_DIRECT_OUTPUT_BYTES) return true;
    return this.#readBack && sizeBytes <= process.availableMemory() * LARGEST_CACHED_SHARE;
  }

  /** Opens the folder of a destination, and refuses what can be told before anything is written. */
  async #prepare(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    refuse: RefuseStanding,
  ): Promise<FolderHandle> {
    return await translated(destination, async () => {
      await this.#refuseOwnPlaces(destination, destination);
      const name = basename(destination);
      const folder = await this.#folders.open(dirname(destination));
      try {
        await this.#refuseOwnPlaces(destination, join(folder.path, name));
        await clearEarlierAttempts({ destination, folder, name, secret: this.#stagingSecret }, key);
        await refuse(destination, folder.entry(name));
        await checkFreeSpace(destination, folder.self, sizeBytes);
        return folder;
      } catch (error) {
        await folder.close();
        throw error;
      }
    });
  }

  /** `path` is the destination as it was asked for or, once the folder is there, with its links resolved. */
  async #refuseOwnPlaces(destination: string, path: string): Promise<void> {
    this.#realOwnPlaces ??= Promise.all(this.#ownPlaces.map(nearestRealPath));
    const places = await this.#realOwnPlaces;
    if (!places.some((place) => isSameOrInside(path, place) || isSameOrInside(place, path))) return;
    throw new AppError('OUTPUT_IN_OWN_PLACE', { path: destination });
  }
}

/** File systems that do not know their size (some network file systems) report no blocks at all, and are not judged. */
async function checkFreeSpace(destination: string, folder: string, sizeBytes: number): Promise<void> {
  const { blocks, bavail, bsize } = statfsSync(folder);
  const freeBytes = bavail * bsize;
  if (blocks === 0 || sizeBytes + FREE_SPACE_MARGIN_BYTES <= freeBytes) return;
  throw new AppError('OUTPUT_DISK_FULL', { path: destination, neededBytes: sizeBytes, freeBytes });
}
