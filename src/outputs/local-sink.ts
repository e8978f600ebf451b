import type { KeyObject } from 'node:crypto';
import { statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { ByteSink } from '#bytes/byte-sink.ts';
import type { LocalSource } from '#bytes/byte-source.ts';
import { openOwnFile } from '#bytes/file-source.ts';
import { spaceOf } from '#bytes/free-space.ts';
import { doOverlap, nearestRealPath } from '#bytes/path-overlap.ts';
import { type StagingKey, stagedNameOf } from '#bytes/staged-name.ts';
import type { ExistingOutputs } from '#config/config.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { CommittedFolders } from './local/commit-folder.ts';
import { type FolderHandle, openOutputFolder } from './local/folder-handle.ts';
import { removeEarlierStagings, StagedFile, type Staging, stagingSecretIn } from './local/staged-entries.ts';
import { StagedFolder } from './local/staged-folder.ts';
import { checkOutputSegments, type Naming } from './output-path.ts';
import {
  entryAt,
  type FolderSink,
  type OutputSink,
  refuseFile,
  refuseFolder,
  withOutputErrors,
} from './output-sink.ts';
import { StagingJournal } from './staging-journal.ts';

/** Free space, in bytes, that an output must leave: folders and journals grow too. */
const FREE_SPACE_MARGIN_BYTES = 1024 * 1024;

/**
 * Less goes through the page cache: nobody waits for the disk then before the next file is begun, and it is likely to be
 * read while it is still there.
 */
const MIN_DIRECT_OUTPUT_BYTES = 16 * 1024 * 1024;

/** Outputs that are read back go through the page cache up to this share of the available memory. */
const MAX_CACHED_SHARE = 0.5;

/** Throws when the entry at a destination must not be replaced by the output. */
type RefuseExisting = (destination: string, path: string) => Promise<void>;

/** The folders of local outputs and of the records about them. */
interface LocalSinkOptions {
  readonly baseDir: string;
  /** This node's own. */
  readonly dataDir: string;
  /** Shared by nodes that share outputs, so that each knows what the others committed; `dataDir` by default. */
  readonly recordsDir?: string;
  /** Paths that no output may overlap; `dataDir` and `recordsDir` by default. They need not exist. */
  readonly protectedPaths?: readonly string[];
  readonly naming?: Naming;
  /** By default, files and publications that this service committed are replaced, and other folders are added to. */
  readonly existing?: ExistingOutputs;
  /** True when outputs are read back after they are written; false by default. */
  readonly readBack?: boolean;
}

/** Outputs as files and folders below one folder of this host: `<base_dir>/<prefix>/<name>/<leaf>`. */
export class LocalSink implements OutputSink {
  readonly #baseDir: string;
  readonly #naming: Naming;
  readonly #existing: ExistingOutputs | undefined;
  readonly #readBack: boolean;
  readonly #journal: StagingJournal;
  readonly #records: CommittedFolders;
  readonly #recordsDir: string;
  #secret: KeyObject | undefined;
  readonly #protectedPaths: readonly string[];
  #realProtectedPaths: Promise<string[]> | null = null;

  /**
   * `dataDir` holds the notes of what is staged, which `recoverStagings` reads; `recordsDir` the records of committed
   * folders, and the secret that the names of stagings are made with.
   */
  constructor({
    baseDir,
    dataDir,
    recordsDir = dataDir,
    protectedPaths = [dataDir, recordsDir],
    naming = 'derived',
    existing,
    readBack = false,
  }: LocalSinkOptions) {
    this.#baseDir = resolve(baseDir);
    this.#naming = naming;
    this.#existing = existing;
    this.#readBack = readBack;
    this.#journal = new StagingJournal(dataDir);
    this.#records = new CommittedFolders(recordsDir);
    this.#recordsDir = recordsDir;
    this.#protectedPaths = protectedPaths;
  }

  namingOf(): Naming {
    return this.#naming;
  }

  destinationOf(output: ApiOutputSpec | null, leaf: string): string {
    return join(this.#baseDir, ...checkOutputSegments(output), leaf);
  }

  async stageFile(destination: string, sizeBytes: number, key: StagingKey, signal: AbortSignal): Promise<ByteSink> {
    return await this.#stage(destination, sizeBytes, key, signal, refuseFolder, (staging, note) =>
      StagedFile.create({
        ...staging,
        noteFollowing: (firstName, firstIdentity) => {
          const { folder, name } = staging;
          const first = { path: join(folder.path, firstName), identity: firstIdentity };
          return this.#journal.noteFollowing(note, first, join(folder.path, name));
        },
      }),
    );
  }

  async openFile(destination: string): Promise<LocalSource | null> {
    return await withOutputErrors(destination, async () => {
      if (entryAt(destination)?.isFile() !== true) return null;
      return await openOwnFile(destination, basename(destination));
    });
  }

  async stageFolder(destination: string, sizeBytes: number, key: StagingKey, signal: AbortSignal): Promise<FolderSink> {
    return await this.#stage(destination, sizeBytes, key, signal, refuseFile, (staging, note) =>
      StagedFolder.create({
        ...staging,
        records: this.#records,
        replacesAny: this.#existing === 'replace',
        noteReplacement: () => this.#journal.noteReplacement(note, join(staging.folder.path, staging.name)),
      }),
    );
  }

  /**
   * Records and creates a staging, and then looks what others have reserved: of two that do not fit beside each other, not both
   * go on. `refuse` throws for entries at the destination that must not be replaced.
   */
  async #stage<Sink extends Pick<ByteSink, 'discard'>>(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    signal: AbortSignal,
    refuse: RefuseExisting,
    create: (staging: Staging, note: string) => Promise<Sink>,
  ): Promise<Sink> {
    signal.throwIfAborted();
    await using undo = new AsyncDisposableStack();
    const folder = undo.adopt(await this.#prepare(destination, sizeBytes, key, refuse), (each) => each.close());
    const stagedName = stagedNameOf(destination, key, this.#stagingSecret);
    const note = await this.#journal.note(join(folder.path, stagedName), key, sizeBytes);
    const forget = () => this.#journal.erase(note);
    undo.defer(forget);
    const staging = { destination, folder, name: basename(destination), stagedName, forget };
    const sink = undo.adopt(await create({ ...staging, isCached: this.#isCached(sizeBytes) }, note), (each) =>
      each.discard(),
    );
    await withOutputErrors(destination, () => this.#leaveReserved(note, destination, folder.self, sizeBytes));
    undo.move();
    return sink;
  }

  /** Throws `OUTPUT_DISK_FULL` where a staging does not fit beside what others have reserved. */
  async #leaveReserved(note: string, destination: string, folder: string, sizeBytes: number): Promise<void> {
    const space = spaceOf(folder);
    if (space === null) return;
    const spareBytes = space.freeBytes - FREE_SPACE_MARGIN_BYTES - sizeBytes;
    const reservedBytes = await this.#journal.reservedByOthers(note, statSync(folder).dev, spareBytes);
    if (reservedBytes <= Math.max(0, spareBytes)) return;
    const { freeBytes } = space;
    throw new AppError('OUTPUT_DISK_FULL', { path: destination, neededBytes: sizeBytes, freeBytes, reservedBytes });
  }

  get #stagingSecret(): KeyObject {
    this.#secret ??= stagingSecretIn(this.#recordsDir);
    return this.#secret;
  }

  #isCached(sizeBytes: number): boolean {
    if (sizeBytes < MIN_DIRECT_OUTPUT_BYTES) return true;
    return this.#readBack && sizeBytes <= process.availableMemory() * MAX_CACHED_SHARE;
  }

  /** Opens the folder of a destination, and refuses what can be told before anything is written. */
  async #prepare(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    refuse: RefuseExisting,
  ): Promise<FolderHandle> {
    return await withOutputErrors(destination, async () => {
      await this.#refuseProtectedPath(destination, destination);
      const name = basename(destination);
      const folder = await openOutputFolder(this.#baseDir, dirname(destination));
      try {
        await this.#refuseProtectedPath(destination, join(folder.path, name));
        await removeEarlierStagings({ destination, folder, name, secret: this.#stagingSecret }, key);
        await refuse(destination, folder.entry(name));
        if (this.#existing === 'keep' && entryAt(folder.entry(name)) !== null)
          throw new AppError('OUTPUT_EXISTS', { path: destination });
        await checkFreeSpace(destination, folder.self, sizeBytes);
        return folder;
      } catch (error) {
        await folder.close();
        throw error;
      }
    });
  }

  /**
   * Throws `OUTPUT_IN_OWN_PLACE`. `path` is the destination as it was asked for or, once the folder is there, with
   * its links resolved.
   */
  async #refuseProtectedPath(destination: string, path: string): Promise<void> {
    // A link is protected, and what it leads to.
    this.#realProtectedPaths ??= Promise.all(
      this.#protectedPaths.flatMap((own) => [nearestRealPath(own), realEntry(own)]),
    );
    const paths = await this.#realProtectedPaths;
    if (!paths.some((other) => doOverlap(path, other))) return;
    throw new AppError('OUTPUT_IN_OWN_PLACE', { path: destination });
  }
}

/** Returns a path with the links of its folder resolved. */
async function realEntry(path: string): Promise<string> {
  return join(await nearestRealPath(dirname(path)), basename(path));
}

/** Throws `OUTPUT_DISK_FULL` or `OUTPUT_EXCEEDS_DISK`. */
async function checkFreeSpace(destination: string, folder: string, sizeBytes: number): Promise<void> {
  const space = spaceOf(folder);
  if (space === null || sizeBytes + FREE_SPACE_MARGIN_BYTES <= space.freeBytes) return;
  const { freeBytes, sizeBytes: totalBytes } = space;
  if (sizeBytes > totalBytes)
    throw new AppError('OUTPUT_EXCEEDS_DISK', { path: destination, neededBytes: sizeBytes, totalBytes });
  throw new AppError('OUTPUT_DISK_FULL', { path: destination, neededBytes: sizeBytes, freeBytes, reservedBytes: 0 });
}
