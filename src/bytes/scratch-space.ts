import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';
import type { ByteSource, LocalSource } from './byte-source.ts';
import { openOwnFile } from './file-source.ts';
import { spaceOf, writtenBytes } from './free-space.ts';
import type { StagingKey } from './staged-name.ts';

/** Free space that stays on the file system beside the reservations. */
const FREE_SPACE_MARGIN_BYTES = 1024 * 1024;
const HEARTBEAT_INTERVAL_MS = 30_000;
/** Begins the name of the empty file in a scratch space that tells others how many bytes it has reserved. */
const RESERVED = '.reserved-';
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
  /** The path of the file that tells the reserved bytes; null where none are. */
  #told: string | null = null;

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
    await translated(path, () => this.#set(path, sizeBytes));
    return {
      path,
      heartbeat: this.heartbeat,
      extend: (extendedBytes) => this.#set(path, extendedBytes),
      release: () => {
        rmSync(path, { force: true });
        if (this.#reserved.delete(path)) this.#tell();
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

  /** Sends heartbeats until a call settles that tells no progress, such as one that has a file read by the SDK. */
  async withHeartbeats<Result>(call: () => Promise<Result>): Promise<Result> {
    const beats = setInterval(this.heartbeat, HEARTBEAT_INTERVAL_MS);
    try {
      return await call();
    } finally {
      clearInterval(beats);
    }
  }

  /** Closes the adopted sources and removes the folder. */
  async remove(): Promise<void> {
    for (const source of this.#adopted.splice(0)) await source.close();
    if (!this.#made) return;
    this.#made = false;
    this.#told = null;
    this.#reserved.clear();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #make(): Promise<void> {
    if (this.#made) return;
    await createScratchFolder(this.#folder);
    this.#made = true;
  }

  /**
   * Reserves the bytes of a file, and tells others before it looks what they have reserved: of two that do not fit beside each
   * other, not both are given them. Throws `SCRATCH_FULL` or `SCRATCH_EXCEEDS_DISK`.
   */
  #set(path: string, sizeBytes: number): void {
    const before = this.#reserved.get(path);
    this.#reserved.set(path, sizeBytes);
    try {
      this.#tell();
      this.#checkFreeSpace();
    } catch (error) {
      if (before === undefined) this.#reserved.delete(path);
      else this.#reserved.set(path, before);
      this.#tell();
      throw error;
    }
  }

  #tell(): void {
    const sum = sumOf([...this.#reserved.values()]);
    const told = sum === 0 ? null : join(this.#folder, `${RESERVED}${sum}`);
    if (told !== null && this.#told !== null) renameSync(this.#told, told);
    else if (told !== null) writeFileSync(told, '', { mode: 0o600 });
    else if (this.#told !== null) rmSync(this.#told, { force: true });
    this.#told = told;
  }

  /**
   * File systems of unknown size (some network file systems) report no blocks and are not checked. Bytes that other inputs have
   * written count as free and reserved in the error: they are free when those end.
   */
  #checkFreeSpace(): void {
    const space = spaceOf(this.#folder);
    if (space === null) return;
    const unwritten = [...this.#reserved].map(([path, bytes]) => Math.max(bytes - writtenBytes(path), 0));
    const neededBytes = sumOf(unwritten);
    const { freeBytes: unusedBytes, sizeBytes: totalBytes } = space;
    const others = spacesIn(this.#location).filter(({ path }) => path !== this.#folder);
    const toldBytes = sumOf(others.map((space) => space.toldBytes));
    // To look what others have written takes longer.
    if (neededBytes + FREE_SPACE_MARGIN_BYTES + toldBytes <= unusedBytes) return;
    const held = others.map((space) => ({ ...space, writtenBytes: writtenBytes(space.path) }));
    const freeBytes = unusedBytes + sumOf(held.map((space) => space.writtenBytes));
    const reservedBytes = sumOf(held.map((space) => Math.max(space.toldBytes, space.writtenBytes)));
    if (neededBytes + FREE_SPACE_MARGIN_BYTES + reservedBytes <= freeBytes) return;
    if (neededBytes > totalBytes)
      throw new AppError('SCRATCH_EXCEEDS_DISK', { path: this.#folder, neededBytes, totalBytes });
    throw new AppError('SCRATCH_FULL', { path: this.#folder, neededBytes, freeBytes, reservedBytes });
  }
}

/** Returns the scratch spaces of the service, with the bytes that each has reserved. */
function spacesIn(location: ScratchLocation): readonly { readonly path: string; readonly toldBytes: number }[] {
  return namesOfSpaces(location).map((name) => {
    const path = join(location.dir, name);
    const told = namesIn(path).find((inside) => inside.startsWith(RESERVED));
    return { path, toldBytes: Number(told?.slice(RESERVED.length) ?? 0) };
  });
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}

function namesOfSpaces(location: ScratchLocation): string[] {
  const prefix = scratchPrefixOf(location);
  return namesIn(location.dir).filter((name) => name.startsWith(prefix));
}

/** Returns the names in a folder; none where it is not there. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

/**
 * Removes the scratch spaces that workers of this service left behind: that of one attempt, or all. Returns
 * the removed paths.
 */
export async function clearScratchSpaces(location: ScratchLocation, key?: StagingKey): Promise<string[]> {
  const own = namesOfSpaces(location).filter((name) => key === undefined || name === scratchNameOf(location, key));
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
  const source = await openOwnFile(file.path, named.name);
  return {
    ...named,
    sizeBytes: source.sizeBytes,
    localPath: source.localPath,
    read: (target, offset, signal) => source.read(target, offset, signal),
    async close() {
      await source.close();
      file.release();
    },
  };
}

async function translated<T>(path: string, step: () => Promise<T> | T): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    if (!isSystemError(cause)) throw cause;
    throw new AppError('SCRATCH_UNUSABLE', { path, problem: problemOf(cause) }, { cause });
  }
}
