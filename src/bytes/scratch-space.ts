import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, rmSync, type Stats, statfsSync, statSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';
import type { ByteSource, LocalSource, StoredObject } from './byte-source.ts';
import { type FileSource, openOwnFile } from './file-source.ts';
import type { StagingKey } from './staged-name.ts';

/** Free space that stays on the file system beside the reservations. */
const FREE_SPACE_MARGIN_BYTES = 1024 * 1024;
/** Unit of `statSync().blocks`, whatever the block size of the file system is (POSIX). */
const STAT_BLOCK_BYTES = 512;
/** Allowed names of files in a scratch space: none leads elsewhere. */
const FILE_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;

/** Location of a service's scratch spaces. */
interface ScratchLocation {
  /** `jobs.scratch_dir`, which services may share. */
  readonly dir: string;
  /** `jobs.data_dir`, which belongs to one service: names of scratch spaces are derived from it. */
  readonly dataDir: string;
}

/** Reservation for one file in a scratch space. Whoever reserved it makes the file. */
export interface ScratchFile {
  readonly path: string;
  /** Sends a heartbeat while the file grows: the service gives up an input without heartbeats. */
  heartbeat(): void;
  /** Enlarges the reservation to `sizeBytes`. Throws `SCRATCH_FULL`. */
  extend(sizeBytes: number): void;
  /** Removes the file and the reservation. Safe to call again. */
  release(): void;
}

interface Closable {
  close(): Promise<void>;
}

/**
 * Folder of one attempt at an input below `jobs.scratch_dir`, for files that must be on this host meanwhile. It is made
 * at the first reservation. The worker removes it when the input ends, and the service when the worker was killed, or
 * at its next start.
 */
export class ScratchSpace {
  readonly #location: ScratchLocation;
  readonly #key: StagingKey;
  readonly #reserved = new Map<string, number>();
  readonly #adopted: Closable[] = [];
  /** Sends a heartbeat for the input while no output is written. */
  readonly heartbeat: () => void;
  #made = false;
  #count = 0;

  constructor(location: ScratchLocation, key: StagingKey, heartbeat: () => void = () => undefined) {
    this.heartbeat = heartbeat;
    this.#location = location;
    this.#key = key;
  }

  /** Computed on demand, because most inputs need no scratch space. */
  get #folder(): string {
    return join(this.#location.dir, scratchNameOf(this.#location, this.#key));
  }

  /**
   * Reserves space for a file of `sizeBytes`. `name` is for people who look into the folder; it need not be unique.
   * Throws `SCRATCH_FULL` where the file system lacks the space beside other reservations, and `SCRATCH_UNUSABLE`.
   */
  async reserve(name: string, sizeBytes: number): Promise<ScratchFile> {
    assert(FILE_NAME.test(name), `"${name}" is a name for a scratch file`);
    await this.#make();
    const path = join(this.#folder, `${this.#count++}-${name}`);
    this.#checkFreeSpace(path, sizeBytes);
    this.#reserved.set(path, sizeBytes);
    return {
      path,
      heartbeat: this.heartbeat,
      extend: (extendedBytes) => {
        this.#checkFreeSpace(path, extendedBytes);
        this.#reserved.set(path, extendedBytes);
      },
      release: () => {
        this.#reserved.delete(path);
        rmSync(path, { force: true });
      },
    };
  }

  /** Reserves space for a folder whose files have `sizeBytes` together, and makes it. Throws as `reserve` does. */
  async reserveFolder(name: string, sizeBytes: number): Promise<ScratchFile> {
    const reserved = await this.reserve(name, sizeBytes);
    await createScratchFolder(reserved.path);
    return {
      ...reserved,
      release: () => {
        rmSync(reserved.path, { force: true, recursive: true });
        reserved.release();
      },
    };
  }

  /**
   * Takes ownership of a source, and closes it when the space is removed: its file can be read by its path until then.
   */
  adopt(source: Closable): void {
    this.#adopted.push(source);
  }

  /** Closes the adopted sources and removes the folder. */
  async remove(): Promise<void> {
    for (const source of this.#adopted.splice(0)) await source.close();
    if (!this.#made) return;
    this.#made = false;
    this.#reserved.clear();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #make(): Promise<void> {
    if (this.#made) return;
    await createScratchFolder(this.#folder);
    this.#made = true;
  }

  /**
   * Throws `SCRATCH_FULL` or `SCRATCH_EXCEEDS_DISK`. File systems of unknown size (some network file systems) report no blocks and
   * are not checked.
   */
  #checkFreeSpace(path: string, sizeBytes: number): void {
    const { blocks, bavail, bsize } = statfsSync(this.#folder);
    if (blocks === 0) return;
    let neededBytes = Math.max(sizeBytes - writtenBytes(path), 0);
    for (const [other, reservedBytes] of this.#reserved) {
      if (other !== path) neededBytes += Math.max(reservedBytes - writtenBytes(other), 0);
    }
    const [freeBytes, totalBytes] = [bavail * bsize, blocks * bsize];
    if (neededBytes + FREE_SPACE_MARGIN_BYTES <= freeBytes) return;
    if (neededBytes > totalBytes)
      throw new AppError('SCRATCH_EXCEEDS_DISK', { path: this.#folder, neededBytes, totalBytes });
    throw new AppError('SCRATCH_FULL', { path: this.#folder, neededBytes, freeBytes });
  }
}

/**
 * Removes the scratch spaces that workers of this service left behind: that of one attempt, or all. Returns
 * the removed paths.
 */
export async function clearScratchSpaces(location: ScratchLocation, key?: StagingKey): Promise<string[]> {
  const names = await readdir(location.dir).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw error;
  });
  const prefix = scratchPrefixOf(location);
  const own = names.filter((name) =>
    key === undefined ? name.startsWith(prefix) : name === scratchNameOf(location, key),
  );
  for (const name of own) await rm(join(location.dir, name), { recursive: true, force: true });
  return own.map((name) => join(location.dir, name));
}

/** Returns `attestream-<8 hex digits of the data folder's hash>-<job>-<input>-<attempt>`. */
function scratchNameOf(location: ScratchLocation, { jobId, inputIndex, attempt }: StagingKey): string {
  return `${scratchPrefixOf(location)}${jobId}-${inputIndex}-${attempt}`;
}

function scratchPrefixOf({ dataDir }: ScratchLocation): string {
  return `attestream-${createHash('sha256').update(dataDir).digest('hex').slice(0, 8)}-`;
}

/** Returns the bytes of a file or folder that are on the disk already, and so no longer free. */
function writtenBytes(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return 0;
  const inside = stats.isDirectory() ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : [];
  return inside.reduce(
    (sum, name) => sum + bytesOf(statSync(join(path, name), { throwIfNoEntry: false })),
    bytesOf(stats),
  );
}

function bytesOf(stats: Stats | undefined): number {
  return (stats?.blocks ?? 0) * STAT_BLOCK_BYTES;
}

/** Makes a folder of a reservation, and those above it. Throws `SCRATCH_UNUSABLE`. */
export async function createScratchFolder(path: string): Promise<void> {
  await translated(path, () => mkdir(path, { recursive: true, mode: 0o700 }));
}

/** Makes the file of a reservation. Throws `SCRATCH_UNUSABLE`. */
export async function createScratchFile(path: string): Promise<FileHandle> {
  return await translated(path, () => open(path, 'wx', 0o600));
}

/** Writes all of `bytes` at a position of a scratch file. Throws `SCRATCH_UNUSABLE`. */
export async function writeScratch(
  handle: FileHandle,
  path: string,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const step = () => handle.write(bytes, written, bytes.length - written, position + written);
    written += (await translated(path, step)).bytesWritten;
  }
}

/** Opens a completely written scratch file. Closing the source removes the file. */
export async function openScratchFile(
  file: ScratchFile,
  named: Pick<ByteSource, 'name' | 'claimedMediaType' | 'storedAt'>,
): Promise<LocalSource> {
  return new ScratchSource(file, await openOwnFile(file.path, named.name), named);
}

async function translated<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    if (!isSystemError(cause)) throw cause;
    throw new AppError('SCRATCH_UNUSABLE', { path, problem: problemOf(cause) }, { cause });
  }
}

/** File of a scratch space that is removed when the source is closed. */
class ScratchSource implements LocalSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly localPath: string;
  readonly claimedMediaType?: string;
  readonly storedAt?: StoredObject;
  readonly #file: ScratchFile;
  readonly #source: FileSource;

  constructor(
    file: ScratchFile,
    source: FileSource,
    { claimedMediaType, storedAt }: Pick<ByteSource, 'claimedMediaType' | 'storedAt'>,
  ) {
    this.name = source.name;
    this.sizeBytes = source.sizeBytes;
    this.localPath = source.localPath;
    if (claimedMediaType !== undefined) this.claimedMediaType = claimedMediaType;
    if (storedAt !== undefined) this.storedAt = storedAt;
    this.#file = file;
    this.#source = source;
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    await this.#source.read(target, offset, signal);
  }

  async close(): Promise<void> {
    await this.#source.close();
    this.#file.release();
  }
}
