import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { readdir, readlink, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isStagedName, type StagingKey } from '#bytes/staged-name.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { syncFolder } from './output-folder.ts';
import { settleReplacement } from './settle-replacement.ts';

/** Follows the name of a note that says which destination what it stages is about to replace. */
const REPLACEMENT_ENDING = '.replaces';

/**
 * Notes of what is being staged, so that nothing stays behind when a process is killed. A note is a symbolic link in
 * `<data_dir>/staging/` whose target is the staged file or folder: it is made and read by one system call each, and is
 * never torn. A note is made before what it stages and removed after it. Before a publication is replaced, a second note
 * with the destination as its target joins the first, durably.
 */
export class StagingJournal {
  readonly #folder: string;
  #folderMade = false;

  constructor(dataDir: string) {
    this.#folder = journalFolderOf(dataDir);
  }

  /** Notes a file or folder that is about to be staged. Returns the note, for `erase`. */
  async note(stagedPath: string, key: StagingKey): Promise<string> {
    if (!this.#folderMade) mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    this.#folderMade = true;
    const note = join(this.#folder, `${notePrefixOf(key)}${basename(stagedPath).slice(1, 9)}`);
    rmSync(note, { force: true });
    symlinkSync(stagedPath, note);
    return note;
  }

  /** Notes that what a note stages is about to take the place of a publication. */
  async noteReplacement(note: string, realDestination: string): Promise<void> {
    rmSync(note + REPLACEMENT_ENDING, { force: true });
    symlinkSync(realDestination, note + REPLACEMENT_ENDING);
    await syncFolder(this.#folder);
  }

  async erase(note: string): Promise<void> {
    await eraseNote(note);
  }
}

/** The note of a replacement goes first: it means nothing without the other. */
async function eraseNote(note: string): Promise<void> {
  rmSync(note + REPLACEMENT_ENDING, { force: true });
  rmSync(note, { force: true });
}

/**
 * Removes what was staged by processes that are gone, and the notes of it: everything at the start of the service, or
 * what one input's attempt left when its worker died. A publication that was being replaced stands whole afterwards, or
 * the one that replaced it does. Only what has a name that stagings have is touched. Returns the paths that were removed.
 */
export async function recoverStagings(dataDir: string, key?: StagingKey): Promise<string[]> {
  const folder = journalFolderOf(dataDir);
  const prefix = key === undefined ? '' : notePrefixOf(key);
  const removed: string[] = [];
  for (const name of await namesIn(folder)) {
    if (!name.startsWith(prefix) || name.endsWith(REPLACEMENT_ENDING)) continue;
    const note = join(folder, name);
    const stagedPath = await targetOf(note);
    if (stagedPath === undefined || !isStagedName(basename(stagedPath))) continue;
    const replaced = await targetOf(note + REPLACEMENT_ENDING);
    if (replaced !== undefined && dirname(replaced) === dirname(stagedPath))
      await settleReplacement(stagedPath, replaced);
    await rm(stagedPath, { force: true, recursive: true });
    await eraseNote(note);
    removed.push(stagedPath);
  }
  return removed;
}

/** What a note says; undefined where there is none, or what is there is no link and so no note of ours. */
async function targetOf(note: string): Promise<string | undefined> {
  return await readlink(note).catch(() => undefined);
}

function journalFolderOf(dataDir: string): string {
  return join(dataDir, 'staging');
}

function notePrefixOf({ jobId, inputIndex, attempt }: StagingKey): string {
  return `${jobId}-${inputIndex}-${attempt}-`;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
