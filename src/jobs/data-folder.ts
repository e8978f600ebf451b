import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { databaseFileOf } from '#config/protected-paths.ts';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';

/** The file in the data folder with the process identifier of the store's owner. */
const OWNER_NAME = 'service.pid';

/**
 * Creates the data folder and an empty database file, readable by the user of the service alone, and returns the file. A
 * folder that existed before keeps its permissions: the start has looked at them. Throws `STORE_FOLDER_UNUSABLE`.
 */
export async function prepareDataFolder(folder: string): Promise<string> {
  const file = databaseFileOf(folder);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await createPrivate(file);
    return file;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new AppError('STORE_FOLDER_UNUSABLE', { folder, problem: problemOf(error) }, { cause: error });
  }
}

/** Creates a private file. Does not open an existing one: closing it would release this process's locks on it (POSIX). */
async function createPrivate(file: string): Promise<void> {
  try {
    await (await open(file, 'wx', 0o600)).close();
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
  }
}

/**
 * Records the owner of the folder. It is only a hint for the error message of a second process: the lock decides. Ignores
 * errors, because the store's own writes report a full disk.
 */
export async function noteOwner(folder: string): Promise<void> {
  await writeFile(join(folder, OWNER_NAME), `${process.pid}\n`, { mode: 0o600 }).catch(() => undefined);
}

/** Returns the recorded owner; null when none can be read. */
export async function notedOwner(folder: string): Promise<number | null> {
  const text = await readFile(join(folder, OWNER_NAME), 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return Number.isSafeInteger(pid) && pid > 0 ? pid : null;
}

/** The operating system releases the lock on this file when the process ends, in whatever way. */
const LOCK_NAME = 'node.lock';

/**
 * Keeps other processes off the data folder of a node: its journal of staged outputs is for one. Resolves with
 * a function that releases it. Throws `STORE_FOLDER_UNUSABLE` or `STORE_IN_USE`.
 */
export async function holdDataFolder(folder: string): Promise<() => void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const lock = lockFile(join(folder, LOCK_NAME));
    await noteOwner(folder);
    return () => lock.close();
  } catch (error) {
    if (isSystemError(error)) {
      throw new AppError('STORE_FOLDER_UNUSABLE', { folder, problem: problemOf(error) }, { cause: error });
    }
    throw new AppError('STORE_IN_USE', { folder, pid: await notedOwner(folder) }, { cause: error });
  }
}

/** Locks a file by a transaction of SQLite that stays open: Node has no locks on files of its own. */
function lockFile(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  try {
    database.exec('pragma locking_mode = exclusive');
    database.exec('begin exclusive');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
