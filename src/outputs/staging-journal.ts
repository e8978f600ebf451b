import { mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isStagedName, type StagingKey } from '#bytes/staged-name.ts';
import { systemErrorCode } from '#errors/system-problem.ts';

/**
 * Notes of what is being staged, so that nothing stays behind when a process is killed. A note is a symbolic link in
 * `<data_dir>/staging/` whose target is the staged file: it is made and read by one system call each, and is never torn.
 * A note is made before its staged file and removed after it.
 */
export class StagingJournal {
  readonly #folder: string;
  #folderMade = false;

  constructor(dataDir: string) {
    this.#folder = journalFolderOf(dataDir);
  }

  /** Notes a file that is about to be staged. Returns the note, for `erase`. */
  async note(stagedPath: string, key: StagingKey): Promise<string> {
    if (!this.#folderMade) await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    this.#folderMade = true;
    const note = join(this.#folder, `${notePrefixOf(key)}${basename(stagedPath).slice(1, 9)}`);
    await rm(note, { force: true });
    await symlink(stagedPath, note);
    return note;
  }

  async erase(note: string): Promise<void> {
    await rm(note, { force: true });
  }
}

/**
 * Removes what was staged by processes that are gone, and the notes of it: everything at the start of the service, or
 * what one input's attempt left when its worker died. Only files with names that stagings have are touched.
 * Returns the paths that were removed.
 */
export async function recoverStagings(dataDir: string, key?: StagingKey): Promise<string[]> {
  const folder = journalFolderOf(dataDir);
  const prefix = key === undefined ? '' : notePrefixOf(key);
  const removed: string[] = [];
  for (const name of await namesIn(folder)) {
    if (!name.startsWith(prefix)) continue;
    const note = join(folder, name);
    const stagedPath = await readlink(note).catch(() => undefined); // Not a link: no note of ours, and left alone.
    if (stagedPath === undefined || !isStagedName(basename(stagedPath))) continue;
    await rm(stagedPath, { force: true });
    await rm(note, { force: true });
    removed.push(stagedPath);
  }
  return removed;
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
