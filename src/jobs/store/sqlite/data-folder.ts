import { chmod, mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { databaseFileOf } from '#config/own-places.ts';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';

/** The name of the file in the data folder that tells who has the store open. */
const OWNER_NAME = 'service.pid';

/**
 * Makes the data folder and an empty database file, readable by the user of the service alone, and resolves with the
 * file. A folder that was there before and holds other things keeps its permissions; the file is private in any case.
 */
export async function prepareDataFolder(folder: string): Promise<string> {
  const file = databaseFileOf(folder);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const names = await readdir(folder);
    if (names.length === 0 || names.includes(basename(file))) await chmod(folder, 0o700);
    await createPrivate(file);
    return file;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new AppError('STORE_FOLDER_UNUSABLE', { folder, problem: problemOf(error) }, { cause: error });
  }
}

/** An existing file is not opened: closing it would end the locks that this process may hold on it (POSIX). */
async function createPrivate(file: string): Promise<void> {
  try {
    await (await open(file, 'wx', 0o600)).close();
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
  }
}

/**
 * Notes who has the folder. It is only a hint for the message to a second process: the lock decides. So where it
 * cannot be written (a full disk), the store's own writes will tell.
 */
export async function noteOwner(folder: string): Promise<void> {
  await writeFile(join(folder, OWNER_NAME), `${process.pid}\n`, { mode: 0o600 }).catch(() => undefined);
}

/** The process that noted itself last; null where nothing readable is noted. */
export async function notedOwner(folder: string): Promise<number | null> {
  const text = await readFile(join(folder, OWNER_NAME), 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return Number.isSafeInteger(pid) && pid > 0 ? pid : null;
}
