import { randomBytes, randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { replacedNameOf, type StagingKey, stagedNameOf } from '#bytes/staged-name.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { entryAt } from '../output-sink.ts';
import type { FolderHandle } from './folder-handle.ts';

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
  await rmdir(above.entry(name));
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
  firstStagedName: string,
  stagedName: string,
  name: string,
): Promise<void> {
  const [first, second, standing] = [firstStagedName, stagedName, name].map((entry) => entryAt(folder.entry(entry)));
  if (first !== null || second === null || standing !== null) return;
  await rename(folder.entry(stagedName), folder.entry(name));
  await folder.sync();
}

/** Earlier attempts whose stagings are removed. */
const MAX_EARLIER_ATTEMPTS = 32;

interface Earlier {
  /** The destination as the caller is told it, and its folder and name. */
  readonly destination: string;
  readonly folder: FolderHandle;
  readonly name: string;
  readonly secret: Buffer;
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
 * The secret that the names of stagings are derived from: `<recordsDir>/staging-secret`, made when it is first needed.
 * Nodes that share their outputs share it, so that each can remove what a lost one staged.
 */
export function stagingSecretIn(recordsDir: string): Buffer {
  const path = join(recordsDir, 'staging-secret');
  const known = readSecret(path);
  if (known?.length === SECRET_BYTES) return known;
  mkdirSync(recordsDir, { recursive: true, mode: 0o700 });
  const unfinished = `${path}.${randomUUID()}`;
  try {
    writeSecret(unfinished);
    // One that is too short was torn when the host lost power.
    if (known === null) publish(unfinished, path);
    else renameSync(unfinished, path);
  } finally {
    rmSync(unfinished, { force: true });
  }
  return readFileSync(path);
}

function readSecret(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

function writeSecret(path: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, randomBytes(SECRET_BYTES));
    fsyncSync(file);
  } finally {
    closeSync(file);
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
