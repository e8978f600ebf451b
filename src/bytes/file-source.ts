import assert from 'node:assert/strict';
import {
  type BigIntStats,
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsync,
  openSync,
  read,
  readSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import type { ByteSource } from './byte-source.ts';

const syncInBackground = promisify(fsync);

/**
 * Open file of this process. Opens and closes synchronously: files are read and written in workers, where nothing else
 * waits for the thread. For 20,000 fragments, asynchronous opening and the garbage collection of file handles took as
 * long as all other work.
 */
export class Descriptor {
  readonly #number: number;
  /**
   * Number of calls running on the thread pool. Until they finish, the descriptor must not be reused for another file.
   */
  #running = 0;
  #closing: PromiseWithResolvers<void> | null = null;
  #closed = false;

  private constructor(number: number) {
    this.#number = number;
  }

  /** Opens a file. Throws system errors unchanged. */
  static open(path: string, flags: string | number): Descriptor {
    return new Descriptor(openSync(path, flags));
  }

  /** The descriptor, for a synchronous call. */
  get number(): number {
    assert(this.#closing === null, 'a file is not used after it was closed');
    return this.#number;
  }

  /** A path to the open file itself, for this process on Linux. */
  get path(): string {
    return `/proc/self/fd/${this.number}`;
  }

  /** Makes a file or the names in a folder durable. */
  sync(): Promise<void> {
    return this.use(syncInBackground);
  }

  /** Runs an asynchronous call, until which the file stays open. */
  async use<Result>(call: (descriptor: number) => Promise<Result>): Promise<Result> {
    const { number } = this;
    this.#running += 1;
    try {
      return await call(number);
    } finally {
      this.#running -= 1;
      this.#closeWhenIdle();
    }
  }

  /** Closes the file when the running calls have finished. Safe to call again. */
  close(): Promise<void> {
    this.#closing ??= Promise.withResolvers();
    this.#closeWhenIdle();
    return this.#closing.promise;
  }

  #closeWhenIdle(): void {
    if (this.#closing === null || this.#closed || this.#running > 0) return;
    this.#closed = true;
    try {
      closeSync(this.#number);
      this.#closing.resolve();
    } catch (error) {
      this.#closing.reject(error);
    }
  }
}

/**
 * Largest synchronous read: files are read in workers, where nothing else waits for the thread, and the thread pool
 * costs more than so small a read.
 */
const MAX_SYNC_READ_BYTES = 256 * 1024;

/**
 * File systems that update the change time (ctime) at every change and let nobody set it: ext2 to ext4, XFS, btrfs,
 * F2FS, ZFS, bcachefs and overlays (statfs(2)). Network file systems and FUSE are not among them, where another host
 * keeps the time, nor is tmpfs, which does not update it for changes through a memory map.
 */
const FILE_SYSTEMS_WITH_CHANGE_TIME = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0xca451a4e, 0x794c7630,
]);

/**
 * Resolution of the change time with a margin: two changes within one tick of the kernel's clock (10 ms at most) have
 * the same time.
 */
const CHANGE_TIME_RESOLUTION_MS = 20;
/** Resolution on file systems with whole seconds, such as ext4 with inodes of 128 bytes. */
const COARSE_CHANGE_TIME_RESOLUTION_MS = 1100;
const NS_PER_MS = 1_000_000n;
const NS_PER_S = 1_000_000_000n;
const readAsync = promisify(read);
const syncDataAsync = promisify(fdatasync);

/** Regular file that stays open, so that all reads are of the same file. */
export class FileSource implements ByteSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly localPath: string;
  readonly #file: Descriptor;
  readonly #opened: BigIntStats;
  #pinning: Promise<boolean> | null = null;

  constructor(file: Descriptor, name: string, localPath: string, opened: BigIntStats) {
    if (opened.size > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw new AppError('SOURCE_OPEN_FAILED', { path: localPath, problem: 'it is larger than 8 PiB' });
    }
    this.#file = file;
    this.name = name;
    this.localPath = localPath;
    this.sizeBytes = Number(opened.size);
    this.#opened = opened;
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    const { name, sizeBytes } = this;
    for (let filled = 0; filled < target.length; ) {
      signal.throwIfAborted();
      const count = await this.#readSome(target, filled, offset + filled);
      if (count === 0) throw new AppError('SOURCE_ENDED_EARLY', { name, offset: offset + filled, sizeBytes });
      filled += count;
    }
  }

  get openedPath(): string {
    return process.platform === 'linux' ? this.#file.path : this.localPath;
  }

  /**
   * Throws `SOURCE_CHANGED` where size, modification time, change time or, if the path still leads to a file, the inode
   * differ. Whoever may write a file may set its modification time; the kernel alone sets the change time, also when a
   * file is renamed, linked, or gets other permissions.
   */
  async checkUnchanged(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const now = fstatSync(this.#file.number, { bigint: true });
    const opened = this.#opened;
    const atPath = statsAt(this.localPath);
    const replaced = atPath !== null && (atPath.ino !== now.ino || atPath.dev !== now.dev);
    // Removing a file updates its change time, too. The change counts only for a pinned file, which must be provably unchanged.
    const isOnlyRemoved = now.nlink === 0n && this.#pinning === null;
    const isTouched = now.mtimeNs !== opened.mtimeNs || (now.ctimeNs !== opened.ctimeNs && !isOnlyRemoved);
    if (replaced || isTouched || now.size !== opened.size) throw new AppError('SOURCE_CHANGED', { name: this.name });
  }

  pin(signal: AbortSignal): Promise<boolean> {
    this.#pinning ??= this.#pin(signal);
    return this.#pinning;
  }

  async #pin(signal: AbortSignal): Promise<boolean> {
    try {
      if (!FILE_SYSTEMS_WITH_CHANGE_TIME.has(statfsSync(this.openedPath).type)) return false;
      // A dirty page takes further changes through a memory map without an update of the change time until it is written.
      await this.#file.use(syncDataAsync);
    } catch (error) {
      if (isSystemError(error)) return false;
      throw error;
    }
    await sleep(ambiguousForMs(this.#opened), undefined, { signal });
    await this.checkUnchanged(signal);
    return true;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #readSome(target: Uint8Array, filled: number, position: number): Promise<number> {
    try {
      const length = target.length - filled;
      if (length <= MAX_SYNC_READ_BYTES) return readSync(this.#file.number, target, filled, length, position);
      const { bytesRead } = await this.#file.use((file) => readAsync(file, target, filled, length, position));
      return bytesRead;
    } catch (cause) {
      if (!isSystemError(cause)) throw cause;
      throw new AppError(
        'SOURCE_READ_FAILED',
        { name: this.name, offset: position, problem: problemOf(cause) },
        { cause },
      );
    }
  }
}

/** Returns the time in ms during which another change could get the same change time. */
function ambiguousForMs({ ctimeNs }: BigIntStats): number {
  const stepMs = ctimeNs % NS_PER_S === 0n ? COARSE_CHANGE_TIME_RESOLUTION_MS : CHANGE_TIME_RESOLUTION_MS;
  const leftMs = Number(ctimeNs / NS_PER_MS) + stepMs - Date.now();
  return leftMs > stepMs ? 0 : Math.max(leftMs, 0);
}

/** Returns null where the path leads nowhere: a file that was moved or removed while open is still read completely. */
function statsAt(path: string): BigIntStats | null {
  try {
    return statSync(path, { bigint: true });
  } catch (error) {
    if (isSystemError(error)) return null;
    throw error;
  }
}

/**
 * Opens a file that this service wrote. Files of others are opened by `inputs`, with more checks. Throws
 * system errors unchanged.
 */
export async function openOwnFile(path: string, name: string): Promise<FileSource> {
  const file = Descriptor.open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return new FileSource(file, name, path, fstatSync(file.number, { bigint: true }));
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Makes the names in a folder durable. Throws system errors unchanged. */
export async function syncFolder(folder: string): Promise<void> {
  const opened = Descriptor.open(folder, 'r');
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}
