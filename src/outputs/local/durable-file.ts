import { constants, fdatasync, fstatSync, fsync, write, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { Descriptor } from '#bytes/file-source.ts';
import { DirectWriter } from './direct-writer.ts';

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
const LONGEST_CACHED_WRITE_BYTES = 512 * 1024;

/** Writes of at most this size are synchronous: the thread pool would cost more. */
const MAX_SYNC_WRITE_BYTES = 256 * 1024;

const writeInBackground = promisify(write);
const syncInBackground = promisify(fsync);
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
    const length = Math.min(bytes.length - written, LONGEST_CACHED_WRITE_BYTES);
    if (length <= MAX_SYNC_WRITE_BYTES) return writeSync(this.#file.number, bytes, written, length, position + written);
    const writing = this.#file.use((file) => writeInBackground(file, bytes, written, length, position + written));
    return (await writing).bytesWritten;
  }

  /** Makes everything that was written durable. */
  async sync(): Promise<void> {
    await this.#flushing;
    // The kernel reports a failed flush once, so the failure of an early one is this one's too.
    if (this.#flushFailure !== null) throw this.#flushFailure.cause;
    await this.#file.use(syncInBackground);
  }

  /** Safe to call again. */
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

/** Syncs of folders that are running, and those that start when they end. */
const running = new Map<string, Promise<void>>();
const queued = new Map<string, Promise<void>>();

/** Makes the entries of a folder durable that no request chooses. Syncs of one folder are shared. */
export function syncFolder(folder: string): Promise<void> {
  return shareSync(folder, async () => {
    const opened = Descriptor.open(folder, 'r');
    try {
      await opened.use(syncInBackground);
    } finally {
      await opened.close();
    }
  });
}

/**
 * Syncs the folder that `key` stands for. Callers that ask while it is being synced share the next sync: the one that runs
 * may have started before their entry was there.
 */
export function shareSync(key: string, sync: () => Promise<void>): Promise<void> {
  const next = queued.get(key);
  if (next !== undefined) return next;
  const current = running.get(key);
  return current === undefined ? startSync(key, sync) : queueSync(key, current, sync);
}

function queueSync(key: string, current: Promise<void>, sync: () => Promise<void>): Promise<void> {
  const next = current.catch(() => undefined).then(() => startSync(key, sync));
  queued.set(key, next);
  return next;
}

function startSync(key: string, sync: () => Promise<void>): Promise<void> {
  queued.delete(key);
  const started = sync().finally(() => running.delete(key));
  running.set(key, started);
  return started;
}
