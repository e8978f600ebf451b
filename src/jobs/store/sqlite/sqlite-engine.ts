import { sql } from 'kysely';
import { AppError } from '#errors/app-error.ts';
import type { StoreEngine } from '../store-engine.ts';
import { notedOwner, noteOwner, prepareDataFolder } from './data-folder.ts';
import { SqliteConnection } from './sqlite-connection.ts';
import { SqliteThreadDialect } from './sqlite-dialect.ts';

/** Opens the embedded database in the data folder, for this process alone. Rejects with an AppError that says why not. */
export async function openSqlite(folder: string): Promise<StoreEngine> {
  const file = await prepareDataFolder(folder);
  const connection = new SqliteConnection(file);
  try {
    await connection.opened();
    await noteOwner(folder);
  } catch (error) {
    await connection.close();
    if (!(error instanceof AppError) || error.reason !== 'STORE_IN_USE') throw error;
    throw new AppError('STORE_IN_USE', { folder, pid: await notedOwner(folder) }, { cause: error });
  }
  return {
    dialect: new SqliteThreadDialect(connection),
    place: file,
    insertInputs: async (db, jobId, inputsJson) => {
      await sql`insert into inputs (job_id, input_index, status, input)
        select ${jobId}, key, 'queued', value from json_each(${inputsJson})`.execute(db);
    },
  };
}
