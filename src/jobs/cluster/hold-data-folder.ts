import { chmod, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import { notedOwner, noteOwner } from '../store/sqlite/data-folder.ts';

/** The operating system lets go of the lock on this file when the process ends, in whatever way. */
const LOCK_NAME = 'node.lock';

/**
 * Keeps other processes off the data folder of a node: its journal of staged outputs is for one. Resolves with what lets
 * go of it.
 */
export async function holdDataFolder(folder: string): Promise<() => void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if ((await readdir(folder)).length === 0) await chmod(folder, 0o700);
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

/** Node has no locks on files of its own; SQLite's are held by a transaction that stays open. */
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
