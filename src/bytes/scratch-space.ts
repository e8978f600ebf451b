import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, rmSync, type Stats, statfsSync, statSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';
import type { StagingKey } from './staged-name.ts';

/** What the file system is left with, in bytes, beside what is reserved. */
const FREE_SPACE_MARGIN_BYTES = 1024 * 1024;

/** `statSync().blocks` counts in units of so many bytes, whatever the file system's own blocks are (POSIX). */
const STAT_BLOCK_BYTES = 512;

/** A file takes this name in its scratch space: nothing that could lead elsewhere. */
const FILE_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;

/** Where a service keeps its scratch spaces. */
export interface ScratchPlace {
  /** `jobs.scratch_dir`, which services may share. */
  readonly dir: string;
  /** `jobs.data_dir`, which belongs to one service: it tells its scratch spaces from others'. */
  readonly dataDir: string;
}

/** Room for one file in a scratch space. The file is made by whoever reserved it. */
export interface ScratchFile {
  readonly path: string;
  /** Tells the service that the file grows: an input of which nothing is heard is given up. */
  grew(): void;
  /** Reserves room for a file that becomes larger than it was taken to be. Throws SCRATCH_FULL. */
  extend(sizeBytes: number): void;
  /** Removes the file and gives its room back. Safe to call again. */
  release(): void;
}

/** What holds something open. */
interface Closable {
  close(): Promise<void>;
}

/**
 * The folder of one attempt at an input below `jobs.scratch_dir`, for what has to lie on this host while it is worked
 * on. Nothing is on the disk before the first reservation; the worker removes it when the input ends, and the service
 * when the worker was killed, or at its next start.
 */
export class ScratchSpace {
  readonly #place: ScratchPlace;
  readonly #key: StagingKey;
  readonly #reserved = new Map<string, number>();
  readonly #adopted: Closable[] = [];
  /** Tells the service that something is being done for the input, while nothing of its output is written. */
  readonly signOfLife: () => void;
  #made = false;
  #count = 0;

  constructor(place: ScratchPlace, key: StagingKey, signOfLife: () => void = () => undefined) {
    this.signOfLife = signOfLife;
    this.#place = place;
    this.#key = key;
  }

  /** Most inputs need none: its name is made only then. */
  get #folder(): string {
    return join(this.#place.dir, scratchNameOf(this.#place, this.#key));
  }

  /**
   * Reserves room for a file of `sizeBytes`. `name` is for people who look into the folder: files may be reserved under
   * the same name. Rejects with SCRATCH_FULL where the file system lacks the room, beside what is reserved already.
   */
  async reserve(name: string, sizeBytes: number): Promise<ScratchFile> {
    assert(FILE_NAME.test(name), `"${name}" is a name for a scratch file`);
    await this.#make();
    const path = join(this.#folder, `${this.#count++}-${name}`);
    this.#checkRoom(path, sizeBytes);
    this.#reserved.set(path, sizeBytes);
    return {
      path,
      grew: this.signOfLife,
      extend: (extendedBytes) => {
        this.#checkRoom(path, extendedBytes);
        this.#reserved.set(path, extendedBytes);
      },
      release: () => {
        this.#reserved.delete(path);
        rmSync(path, { force: true });
      },
    };
  }

  /** Reserves room for a folder whose files together take `sizeBytes`, and makes it. */
  async reserveFolder(name: string, sizeBytes: number): Promise<ScratchFile> {
    const reserved = await this.reserve(name, sizeBytes);
    await mkdir(reserved.path, { mode: 0o700 });
    return {
      ...reserved,
      release: () => {
        rmSync(reserved.path, { force: true, recursive: true });
        reserved.release();
      },
    };
  }

  /** Closes a source only when the space is removed: its file may be read by its path until then. */
  adopt(source: Closable): void {
    this.#adopted.push(source);
  }

  /** Closes what it adopted, and removes the space with everything in it. */
  async remove(): Promise<void> {
    for (const source of this.#adopted.splice(0)) await source.close();
    if (!this.#made) return;
    this.#made = false;
    this.#reserved.clear();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #make(): Promise<void> {
    if (this.#made) return;
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    } catch (cause) {
      if (!isSystemError(cause)) throw cause;
      throw new AppError('SCRATCH_UNUSABLE', { path: this.#folder, problem: problemOf(cause) }, { cause });
    }
    this.#made = true;
  }

  /** File systems that do not know their size (some network file systems) report no blocks at all, and are not judged. */
  #checkRoom(path: string, sizeBytes: number): void {
    const { blocks, bavail, bsize } = statfsSync(this.#folder);
    if (blocks === 0) return;
    let neededBytes = Math.max(sizeBytes - writtenBytes(path), 0);
    for (const [other, reservedBytes] of this.#reserved) {
      if (other !== path) neededBytes += Math.max(reservedBytes - writtenBytes(other), 0);
    }
    const freeBytes = bavail * bsize;
    if (neededBytes + FREE_SPACE_MARGIN_BYTES <= freeBytes) return;
    throw new AppError('SCRATCH_FULL', { path: this.#folder, neededBytes, freeBytes });
  }
}

/**
 * Removes the scratch spaces that workers of this service left behind: that of one attempt, or all. Returns the paths
 * that were removed.
 */
export async function clearScratchSpaces(place: ScratchPlace, key?: StagingKey): Promise<string[]> {
  const names = await readdir(place.dir).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw error;
  });
  const prefix = scratchPrefixOf(place);
  const own = names.filter((name) =>
    key === undefined ? name.startsWith(prefix) : name === scratchNameOf(place, key),
  );
  for (const name of own) await rm(join(place.dir, name), { recursive: true, force: true });
  return own.map((name) => join(place.dir, name));
}

/** `attestream-<8 hex digits of the data folder's hash>-<job>-<input>-<attempt>`. */
function scratchNameOf(place: ScratchPlace, { jobId, inputIndex, attempt }: StagingKey): string {
  return `${scratchPrefixOf(place)}${jobId}-${inputIndex}-${attempt}`;
}

function scratchPrefixOf({ dataDir }: ScratchPlace): string {
  return `attestream-${createHash('sha256').update(dataDir).digest('hex').slice(0, 8)}-`;
}

/** What of a file or folder is on the disk already, and so no longer free. */
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
