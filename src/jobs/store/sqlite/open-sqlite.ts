import { AppError } from '#errors/app-error.ts';
import type { ActionRunner } from '../actions.ts';
import { notedOwner, noteOwner, prepareDataFolder } from './data-folder.ts';
import { SqliteRunner } from './sqlite-runner.ts';

/**
 * Opens the embedded database in the data folder, for this process alone, with its tables up to date. Rejects with an
 * AppError that says why not.
 */
export async function openSqlite(folder: string): Promise<ActionRunner> {
  const runner = new SqliteRunner(await prepareDataFolder(folder));
  try {
    await runner.opened();
    await noteOwner(folder);
    return runner;
  } catch (error) {
    await runner.close();
    if (!(error instanceof AppError) || error.reason !== 'STORE_IN_USE') throw error;
    throw new AppError('STORE_IN_USE', { folder, pid: await notedOwner(folder) }, { cause: error });
  }
}
