import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import { openOwnFile } from '#bytes/file-source.ts';
import { folderOf } from '#bytes/path-overlap.ts';
import { isReservedName } from '#bytes/staged-name.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { BackgroundTasks } from '#concurrency/semaphore.ts';
import { AppError } from '#errors/app-error.ts';
import { type FolderPart, type FolderSink, outputError, withOutputErrors } from '../output-sink.ts';
import { type CommittedFolders, commitFolder } from './commit-folder.ts';
import { DurableFile } from './durable-file.ts';
import { FolderTree } from './folder-tree.ts';
import type { Staging } from './staged-entries.ts';
import { removeEntry, requireFolderInPlace } from './staged-entries.ts';

/** Closed files that become durable at once, and folders: the file system makes one commit of all that wait together. */
const MAX_CONCURRENT_SYNCS = 16;

/**
 * Closed files that wait to become durable, each of them open. A group of fragments is handed over all at once: without
 * a queue for two groups, hashing stood still until the disk had half of it, and 1.5 GB took 2.5 s, not 1.9 s.
 */
const MAX_WAITING_SYNCS = 64;

/** The parameters of a staged folder. */
interface FolderStaging extends Staging {
  readonly records: CommittedFolders;
  /** Replaces any folder, not only one that this service committed. */
  readonly replacesAny: boolean;
  /** Notes, durably, that what stands at the destination is about to be replaced whole. */
  readonly noteReplacement: () => Promise<void>;
}

/** A folder that is written beside its destination under a hidden name, and committed when it is whole. */
export class StagedFolder implements FolderSink {
  readonly destination: string;
  readonly stagedPath: string;
  readonly #staging: FolderStaging;
  readonly #tree: FolderTree;
  /** Every file by its path, with its size in bytes once it is closed. */
  readonly #files = new Map<string, number>();
  /** The files that are being written. */
  readonly #open = new Map<FolderPart, DurableFile>();
  /** Folders that were made or are being made, relative to the staged one, which is the empty path. */
  readonly #folders = new Map<string, Promise<void>>([['', Promise.resolve()]]);
  readonly #syncing = new BackgroundTasks({ maxRunning: MAX_CONCURRENT_SYNCS, maxWaiting: MAX_WAITING_SYNCS });
  #failure: { readonly error: unknown } | null = null;
  #sealed = false;
  #closed = false;

  private constructor(staging: FolderStaging, tree: FolderTree) {
    this.destination = staging.destination;
    this.stagedPath = staging.folder.entry(staging.stagedName);
    this.#staging = staging;
    this.#tree = tree;
  }

  /** Creates the staged folder, in place of one that the same attempt left behind. */
  static async create(staging: FolderStaging): Promise<StagedFolder> {
    return await withOutputErrors(staging.destination, async () => {
      const { folder, stagedName } = staging;
      await removeEntry(folder, stagedName);
      await mkdir(folder.entry(stagedName));
      return new StagedFolder(staging, new FolderTree(folder.enter(stagedName)));
    });
  }

  async create(path: string, signal: AbortSignal): Promise<FolderPart> {
    signal.throwIfAborted();
    this.#throwFailure();
    const segments = path.split('/');
    assert(!segments.some((segment) => /^\.{0,2}$/.test(segment)), `${path} is relative to the folder and inside it`);
    assert(!this.#sealed && !this.#files.has(path), `${path} is created once, before the folder is sealed`);
    if (segments.some(isReservedName)) throw new AppError('OUTPUT_NAME_RESERVED', { path });
    const folder = segments.slice(0, -1).join('/');
    return await this.#translated(async () => {
      await this.#makeFolder(folder);
      const file = await this.#tree.at(path, (entry) => DurableFile.create(entry, this.#staging));
      this.#files.set(path, 0);
      const part: FolderPart = {
        write: (bytes, position, stop) => this.#translated(() => file.write(bytes, position, stop)),
        close: async () => {
          if (!this.#open.delete(part)) return;
          this.#files.set(path, file.sizeBytes);
          await this.#syncInBackground(file);
        },
      };
      this.#open.set(part, file);
      return part;
    });
  }

  async adopt(path: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#throwFailure();
    assert(!this.#sealed && !this.#files.has(path), `${path} is adopted once, before the folder is sealed`);
    await this.#translated(async () => {
      for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
        const folder = path.slice(0, at);
        if (!this.#folders.has(folder)) this.#folders.set(folder, Promise.resolve());
      }
      const file = await this.#tree.at(path, (entry) => DurableFile.adopt(entry));
      this.#files.set(path, file.sizeBytes);
      await this.#syncInBackground(file);
    });
  }

  async open(path: string, signal: AbortSignal): Promise<ByteSource> {
    signal.throwIfAborted();
    assert(this.#sealed && this.#files.has(path), `${path} was staged, and the folder sealed`);
    return await this.#translated(() => openOwnFile(join(this.stagedPath, path), path));
  }

  async seal(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    assert(this.#open.size === 0, 'every part is closed before the folder is sealed');
    await this.#syncing.settled();
    this.#throwFailure();
    await this.#translated(() =>
      mapConcurrent([...this.#folders.keys()], MAX_CONCURRENT_SYNCS, (folder) =>
        this.#tree.in(folder, (each) => each.sync()),
      ),
    );
    this.#sealed = true;
  }

  /** Commits the folder. Ignores the signal once the folder has its name. */
  async commit(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    assert(this.#sealed, 'a folder is sealed before it is committed');
    const { records, folder, name, forget } = this.#staging;
    requireFolderInPlace(this.#staging);
    await this.#translated(async () => {
      const record = await records.add(join(folder.path, name), this.#files);
      try {
        await commitFolder({ ...this.#staging, staged: this.#tree, paths: [...this.#files.keys()] });
      } catch (error) {
        await records.remove(record);
        throw error;
      }
      await records.keepOnly(record).catch(() => undefined); // One too many costs nothing but a look at it.
    });
    // The output is committed: a note that cannot be removed now is removed at the next start.
    await forget().catch(() => undefined);
    await this.#close();
  }

  async discard(): Promise<void> {
    if (this.#closed) return;
    await this.#syncing.settled();
    for (const file of this.#open.values()) await file.close();
    this.#open.clear();
    try {
      await removeEntry(this.#staging.folder, this.#staging.stagedName);
      await this.#staging.forget();
    } finally {
      await this.#close();
    }
  }

  async #close(): Promise<void> {
    this.#closed = true;
    await this.#tree.close();
    await this.#staging.folder.close();
  }

  #makeFolder(folder: string): Promise<void> {
    const made = this.#folders.get(folder);
    if (made !== undefined) return made;
    const making = this.#makeFolder(folderOf(folder)).then(() => this.#tree.at(folder, (entry) => mkdir(entry)));
    this.#folders.set(folder, making);
    return making;
  }

  /** Syncs a file in the background; waits only while too many syncs are queued. */
  async #syncInBackground(file: DurableFile): Promise<void> {
    await this.#syncing.start(() => this.#syncAndClose(file));
    this.#throwFailure();
  }

  /** Keeps the first failure; never rejects. */
  async #syncAndClose(file: DurableFile): Promise<void> {
    try {
      try {
        await file.sync();
      } finally {
        await file.close();
      }
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  #throwFailure(): void {
    if (this.#failure !== null) throw outputError(this.destination, this.#failure.error);
  }

  async #translated<T>(step: () => Promise<T>): Promise<T> {
    return await withOutputErrors(this.destination, step);
  }
}
