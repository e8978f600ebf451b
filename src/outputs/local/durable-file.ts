import { constants, fdatasync, fstatSync, statfsSync, write, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { isPageMemory, offsetInPage } from '#bytes/buffers.ts';
import { Descriptor } from '#bytes/file-source.ts';
import { systemErrorCode } from '#errors/system-problem.ts';

/**
 * Bytes written between two flushes in the background. Measured on a 1.2 GB file: 300 ms of sync at the end without, 25 ms
 * with 64 MiB, and the copy itself takes no longer; on one of 0.1 GB, 12 ms with 64 MiB, 7 with 16.
 */
const FLUSH_EVERY_BYTES = 16 * 1024 * 1024;

/**
 * Longest write through the page cache, in bytes. The kernel makes a page of the cache as large as a write lets it, and for
 * pages of 2 MiB it uses memory that a virtual machine has returned to its host: 1.2 GB, read back, took 4.2 to 5.0 s with
 * writes of 2 MiB, and 2.5 s with these.
 */
const MAX_CACHED_WRITE_BYTES = 512 * 1024;

/** Writes of at most this size are synchronous: the thread pool would cost more. */
const MAX_SYNC_WRITE_BYTES = 256 * 1024;

const writeInBackground = promisify(write);
const syncDataInBackground = promisify(fdatasync);

/** A file that is written at positions and made durable. Throws the system's errors as they are. */
export class DurableFile {
  readonly #file: Descriptor;
  readonly #direct: DirectWriter | null;
  #sizeBytes = 0;
  #unflushedBytes = 0;
  #flushing: Promise<void> | null = null;
  #flushFailure: { readonly cause: unknown } | null = null;

  private constructor(file: Descriptor, direct: DirectWriter | null) {
    this.#file = file;
    this.#direct = direct;
  }

  /**
   * Creates a file; an error where there is one already. Unless all of it is to be cached, as much as can be is written
   * around the page cache.
   */
  static create(path: string, { isCached }: { readonly isCached: boolean }): DurableFile {
    const file = Descriptor.open(path, 'wx');
    return new DurableFile(file, isCached ? null : new DirectWriter(file));
  }

  /** Opens a file that a program has written, to make it durable. Links are not followed. */
  static adopt(path: string): DurableFile {
    const file = Descriptor.open(path, constants.O_RDWR | constants.O_NOFOLLOW);
    const adopted = new DurableFile(file, null);
    adopted.#sizeBytes = fstatSync(file.number).size;
    return adopted;
  }

  /** The end of what was written so far. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  async write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const direct = (await this.#direct?.write(bytes, position)) ?? { start: 0, end: 0 };
    await this.#writeCached(bytes.subarray(0, direct.start), position, signal);
    await this.#writeCached(bytes.subarray(direct.end), position + direct.end, signal);
    this.#sizeBytes = Math.max(this.#sizeBytes, position + bytes.length);
  }

  /** Writes through the page cache. */
  async #writeCached(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      signal.throwIfAborted();
      written += await this.#writeSome(bytes, written, position);
    }
    this.#flushEarly(bytes.length);
  }

  async #writeSome(bytes: Uint8Array, written: number, position: number): Promise<number> {
    const length = Math.min(bytes.length - written, MAX_CACHED_WRITE_BYTES);
    if (length <= MAX_SYNC_WRITE_BYTES) return writeSync(this.#file.number, bytes, written, length, position + written);
    const writing = this.#file.use((file) => writeInBackground(file, bytes, written, length, position + written));
    return (await writing).bytesWritten;
  }

  /** Makes everything that was written durable. */
  async sync(): Promise<void> {
    await this.#flushing;
    // The kernel reports a failed flush once, so the failure of an early one is this one's too.
    if (this.#flushFailure !== null) throw this.#flushFailure.cause;
    await this.#file.sync();
  }

  /** Closes the file. Safe to call again. */
  async close(): Promise<void> {
    await this.#flushing;
    await this.#direct?.close();
    await this.#file.close();
  }

  /** Starts writing what the page cache holds to the device while more is being copied, one flush at a time. */
  #flushEarly(cachedBytes: number): void {
    this.#unflushedBytes += cachedBytes;
    if (this.#unflushedBytes < FLUSH_EVERY_BYTES || this.#flushing !== null) return;
    this.#unflushedBytes = 0;
    this.#flushing = this.#file.use(syncDataInBackground).then(
      () => {
        this.#flushing = null;
      },
      (cause: unknown) => {
        this.#flushFailure ??= { cause };
        this.#flushing = null;
      },
    );
  }
}

/** Smaller writes go through the page cache: they are not worth a wait for the disk. */
const MIN_DIRECT_WRITE_BYTES = 64 * 1024;

/**
 * The largest page that the page cache may have: what is written directly ends where such pages do, so that no page is
 * written both ways. Kernels for x64 have one size, those for other processors are built with up to 64 KiB.
 */
const CACHE_PAGE_BYTES = process.arch === 'x64' ? 4096 : 65_536;

/**
 * File systems of this host's own disks (statfs(2)): ext2 to ext4, XFS and btrfs. Over a network, a server would be asked
 * to make every write durable by itself.
 */
const DIRECT_FILE_SYSTEMS = [0xef53, 0x58465342, 0x9123683e];

/** Error codes of file systems that refuse direct writes. */
const REFUSALS = ['EINVAL', 'EOPNOTSUPP'];

/** The range `[start, end)` of the given bytes that was written. */
interface WrittenRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Writes to a file around the page cache (O_DIRECT), where memory and file system allow it. A film then takes no memory of
 * the host but the buffers it passes through, evicts nothing from the cache, and does not wait for memory that the host of a
 * virtual machine gives slowly. Measured: signing a film of 6 GB takes 5.1 s, and 15.6 s through the cache.
 */
class DirectWriter {
  readonly #file: Descriptor;
  /** Opened at the first direct write; null when the file system refuses. */
  #direct: Descriptor | null | undefined;

  /** `file` stays the caller's, and open until this is closed. */
  constructor(file: Descriptor) {
    this.#file = file;
  }

  /**
   * Writes as many whole pages of `bytes` as can be, and returns which bytes those were; an empty range where there are
   * none. Throws the system's errors as they are.
   */
  async write(bytes: Uint8Array, position: number): Promise<WrittenRange> {
    const { start, end } = wholePagesOf(bytes, position);
    if (end - start < MIN_DIRECT_WRITE_BYTES) return NOTHING;
    if (this.#direct === undefined) this.#direct = openDirectly(this.#file);
    if (this.#direct === null) return NOTHING;
    try {
      const writing = this.#direct.use((file) => writeInBackground(file, bytes, start, end - start, position + start));
      return { start, end: start + (await writing).bytesWritten };
    } catch (error) {
      if (!REFUSALS.includes(systemErrorCode(error) ?? '')) throw error;
      return NOTHING;
    }
  }

  /** Closes the file. Safe to call again. */
  async close(): Promise<void> {
    await this.#direct?.close();
  }
}

const NOTHING: WrittenRange = { start: 0, end: 0 };

/** Returns the bytes that fill whole pages of the file and lie on pages of memory in the same way. */
function wholePagesOf(bytes: Uint8Array, position: number): WrittenRange {
  if (!isPageMemory(bytes) || offsetInPage(bytes.byteOffset) !== offsetInPage(position)) return NOTHING;
  const end = position + bytes.length;
  const firstPage = Math.ceil(position / CACHE_PAGE_BYTES) * CACHE_PAGE_BYTES;
  const lastPage = end - (end % CACHE_PAGE_BYTES);
  return firstPage < lastPage ? { start: firstPage - position, end: lastPage - position } : NOTHING;
}

/** Opens the same file once more; null where that cannot be done, and the page cache has to do. */
function openDirectly(file: Descriptor): Descriptor | null {
  const { path } = file;
  try {
    if (constants.O_DIRECT === undefined || !DIRECT_FILE_SYSTEMS.includes(statfsSync(path).type)) return null;
    return Descriptor.open(path, constants.O_WRONLY | constants.O_DIRECT);
  } catch (error) {
    if (systemErrorCode(error) === undefined) throw error;
    return null;
  }
}
