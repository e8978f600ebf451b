import assert from 'node:assert/strict';
import { createSecretKey, type KeyObject, randomBytes, randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { isReservedName, replacedNameOf, type StagingKey, stagedNameOf } from '#bytes/staged-name.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { stemOf } from '../output-path.ts';
import { entryAt, outputError, refuseFolder, withOutputErrors } from '../output-sink.ts';
import { DurableFile } from './durable-file.ts';
import type { FolderHandle } from './folder-handle.ts';

/** The parameters of a staged output. */
export interface Staging {
  /** The path that the caller is told, as `destinationOf` composed it. */
  readonly destination: string;
  /** The folder that it lies in, with links resolved; closed once nothing is staged any more. */
  readonly folder: FolderHandle;
  /** The names in it: of the output, and of what is staged. */
  readonly name: string;
  readonly stagedName: string;
  /** True when all of it goes through the page cache. */
  readonly isCached: boolean;
  /** Removes the note of what is staged; called when it is neither here nor on the disk any more. */
  readonly forget: () => Promise<void>;
}

/** The parameters of a staged file. */
interface FileStaging extends Staging {
  /** Notes, durably, that this file is about to take its name right after another file took `firstName`. */
  readonly noteFollowing: (firstName: string, firstIdentity: string) => Promise<void>;
}

/**
 * Throws `OUTPUT_FAILED` where the folder was moved, replaced or hidden by a mount since it was opened: the output would
 * appear there, and not under the path that the caller is told.
 */
export function requireFolderInPlace({ destination, folder }: Staging): void {
  if (folder.isAt(dirname(destination))) return;
  const problem = 'its folder was moved or replaced while the output was written';
  throw new AppError('OUTPUT_FAILED', { path: destination, problem });
}

/** A file that is written beside its destination under a hidden name, and renamed when it is whole. */
export class StagedFile implements ByteSink {
  readonly destination: string;
  readonly stagedPath: string;
  readonly isOnDisk = true;
  readonly #staging: FileStaging;
  readonly #file: DurableFile;
  #finished = false;

  private constructor(staging: FileStaging, file: DurableFile) {
    this.destination = staging.destination;
    this.stagedPath = staging.folder.entry(staging.stagedName);
    this.#staging = staging;
    this.#file = file;
  }

  /** Creates the staged file, in place of one that the same attempt left behind. */
  static async create(staging: FileStaging): Promise<StagedFile> {
    return await withOutputErrors(staging.destination, async () => new StagedFile(staging, await createFile(staging)));
  }

  async write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    await this.#translated(() => this.#file.write(bytes, position, signal));
  }

  async seal(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#translated(() => this.#file.sync());
    await this.#file.close();
  }

  /** Commits the file. Ignores the signal once the file has its name: the folder is synced or the file removed. */
  async commit(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#appear();
    await this.#finish();
  }

  /**
   * Sets aside what has this name, commits the first file, and gives this one its name. The journal knows both: after a
   * crash, a first file without its name means that nothing was committed, and one with it that this file has to follow.
   * Nothing follows from a first file that is no longer staged: an attempt on another node may have removed it.
   * Throws `SIDECAR_OF_OTHER_FILE` where what has this name belongs to a file that stands beside it.
   */
  async commitAfter(first: ByteSink, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { folder, name, stagedName, noteFollowing } = this.#staging;
    assert(first instanceof StagedFile && first.#staging.folder.path === folder.path, 'both lie in one folder');
    const replacedName = replacedNameOf(stagedName);
    await refuseFolder(this.destination, folder.entry(name));
    await this.#translated(() => this.#refuseForeign(first.#staging.name));
    await this.#translated(async () => {
      await noteFollowing(first.#staging.name, identityAt(first.stagedPath));
      if (entryAt(folder.entry(name)) !== null) renameSync(folder.entry(name), folder.entry(replacedName));
    });
    try {
      await first.commit(signal);
      await this.#appear();
    } catch (error) {
      if (first.#finished) await removeEntry(folder, first.#staging.name);
      await recoverReplacement(folder, stagedName, name);
      throw error;
    }
    await removeEntry(folder, replacedName);
    await this.#finish();
  }

  /**
   * Refuses a file that was published with another one of the same stem; it is the first one's own where that is there.
   * Throws `SIDECAR_OF_OTHER_FILE`.
   */
  #refuseForeign(firstName: string): void {
    const { folder, name } = this.#staging;
    if (entryAt(folder.entry(name)) === null || entryAt(folder.entry(firstName)) !== null) return;
    const isOwner = (other: string): boolean =>
      other !== name && stemOf(other) === stemOf(name) && !isReservedName(other);
    const owner = readdirSync(folder.self).find(isOwner);
    if (owner !== undefined) throw new AppError('SIDECAR_OF_OTHER_FILE', { path: this.destination, owner });
  }

  async #appear(): Promise<void> {
    const { folder, name } = this.#staging;
    requireFolderInPlace(this.#staging);
    try {
      renameSync(this.stagedPath, folder.entry(name));
    } catch (error) {
      await refuseFolder(this.destination, folder.entry(name));
      throw outputError(this.destination, error);
    }
    try {
      await this.#translated(() => folder.sync());
    } catch (error) {
      await removeEntry(folder, name);
      throw error;
    }
  }

  async #finish(): Promise<void> {
    const { folder, forget } = this.#staging;
    this.#finished = true;
    // The output is committed: a note that cannot be removed now is removed at the next start.
    await forget().catch(() => undefined);
    await folder.close();
  }

  async discard(): Promise<void> {
    if (this.#finished) return;
    this.#finished = true;
    const { folder, stagedName, forget } = this.#staging;
    await this.#file.close();
    try {
      await removeEntry(folder, stagedName);
      await forget();
    } finally {
      await folder.close();
    }
  }

  async #translated<T>(step: () => Promise<T> | T): Promise<T> {
    return await withOutputErrors(this.destination, step);
  }
}

async function createFile({ folder, stagedName, isCached }: Staging): Promise<DurableFile> {
  const path = folder.entry(stagedName);
  try {
    return DurableFile.create(path, { isCached });
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
    await removeEntry(folder, stagedName);
    return DurableFile.create(path, { isCached });
  }
}

/** Entries of one folder that are removed at once. */
const MAX_CONCURRENT_REMOVALS = 16;

/** Error codes of removing a file that is a folder, on Linux and other systems. */
const IS_FOLDER = ['EISDIR', 'EPERM'];

/**
 * Removes a file, a link, or a folder with everything in it; nothing where there is none. As `rm -r`, but a folder that
 * becomes a link meanwhile is not followed.
 */
export async function removeEntry(folder: FolderHandle, name: string): Promise<void> {
  try {
    await unlink(folder.entry(name));
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    if (code === 'ENOENT') return;
    if (!IS_FOLDER.includes(code)) throw error;
    await removeFolder(folder, name, error);
  }
}

async function removeFolder(above: FolderHandle, name: string, cause: unknown): Promise<void> {
  const folder = openFolder(above, name, cause);
  if (folder === null) return;
  try {
    const entries = await readdir(folder.self, { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory());
    const others = entries.filter((entry) => !entry.isDirectory());
    await mapConcurrent(others, MAX_CONCURRENT_REMOVALS, (entry) => removeEntry(folder, entry.name));
    // One after another: each is open while it is emptied.
    for (const { name: inner } of folders) await removeEntry(folder, inner);
  } finally {
    await folder.close();
  }
  try {
    await rmdir(above.entry(name));
  } catch (error) {
    // Another node removes what the same lost attempt has left.
    if (systemErrorCode(error) !== 'ENOENT') throw error;
  }
}

/** Opens a folder; returns null when it is gone. Throws `cause`, the error of removing it as a file, when it is no folder. */
function openFolder(above: FolderHandle, name: string, cause: unknown): FolderHandle | null {
  try {
    return above.enter(name);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT') return null;
    throw code === 'ENOTDIR' || code === 'ELOOP' ? cause : error;
  }
}

/**
 * Finishes or reverts a replacement that was interrupted at any point: the old publication is restored when nothing took its
 * place, and removed otherwise. Either way one whole publication has the name. Safe to call again.
 */
export async function recoverReplacement(folder: FolderHandle, stagedName: string, name: string): Promise<void> {
  const replacedName = replacedNameOf(stagedName);
  if (entryAt(folder.entry(replacedName)) === null) return;
  if (entryAt(folder.entry(name)) === null) await rename(folder.entry(replacedName), folder.entry(name));
  else await removeEntry(folder, replacedName);
  await folder.sync();
}

/**
 * Finishes a commit of two files that was interrupted when the first had its name and the second had not: gives the second
 * its name, unless another file took it. Safe to call again.
 */
export async function finishFollowing(
  folder: FolderHandle,
  first: { readonly name: string; readonly identity: string },
  stagedName: string,
  name: string,
): Promise<void> {
  if (identityAt(folder.entry(first.name)) !== first.identity) return;
  if (entryAt(folder.entry(stagedName)) === null || entryAt(folder.entry(name)) !== null) return;
  await rename(folder.entry(stagedName), folder.entry(name));
  await folder.sync();
}

/** Returns the inode and size of a sealed file, which it keeps when it is renamed; empty for none. */
function identityAt(path: string): string {
  const entry = entryAt(path);
  return entry === null ? '' : `${entry.ino}-${entry.size}`;
}

/** Earlier attempts whose stagings are removed. */
const MAX_EARLIER_ATTEMPTS = 32;

interface Earlier {
  /** The destination as the caller is told it, and its folder and name. */
  readonly destination: string;
  readonly folder: FolderHandle;
  readonly name: string;
  readonly secret: KeyObject;
}

/**
 * Removes what earlier attempts at an input staged for its destination, and recovers replacements that they had started.
 * Their node, and the journal on it, may be lost for good; they may commit nothing, since a later attempt has started.
 */
export async function removeEarlierStagings(
  { destination, folder, name, secret }: Earlier,
  key: StagingKey,
): Promise<void> {
  for (let attempt = Math.max(1, key.attempt - MAX_EARLIER_ATTEMPTS); attempt < key.attempt; attempt += 1) {
    const stagedName = stagedNameOf(destination, { ...key, attempt }, secret);
    await recoverReplacement(folder, stagedName, name);
    await removeEntry(folder, stagedName);
  }
}

const SECRET_BYTES = 32;

/** Error codes of file systems without hard links. */
const WITHOUT_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/**
 * Returns the secret that the names of stagings are derived from: `<recordsDir>/staging-secret`, made when it is first
 * needed. Nodes that share their outputs share it, so that each can remove what a lost one staged.
 */
export function stagingSecretIn(recordsDir: string): KeyObject {
  const path = join(recordsDir, 'staging-secret');
  const known = readSecret(path);
  if (known?.length === SECRET_BYTES) return createSecretKey(known);
  mkdirSync(recordsDir, { recursive: true, mode: 0o700 });
  const unfinished = `${path}.${randomUUID()}`;
  try {
    writeFileSync(unfinished, randomBytes(SECRET_BYTES), { flag: 'wx', mode: 0o600, flush: true });
    // One that is too short was torn when the host lost power.
    if (known === null) publish(unfinished, path);
    else renameSync(unfinished, path);
  } finally {
    rmSync(unfinished, { force: true });
  }
  return createSecretKey(readFileSync(path));
}

function readSecret(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Publishes a secret. When several processes do so at once, one wins and all use its secret. */
function publish(unfinished: string, path: string): void {
  try {
    linkSync(unfinished, path);
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    if (WITHOUT_LINKS.includes(code)) renameSync(unfinished, path);
    else if (code !== 'EEXIST') throw error;
  }
}
