import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Config } from '#config/config.ts';
import { databaseFileOf } from '#config/protected-paths.ts';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';
import { notedOwner } from './data-folder.ts';
import { migrations } from './store/migrations.ts';
import { failureOf, storeError } from './store/sqlite/sqlite-messages.ts';

/** The state of a job store that can be used. */
export interface StoreState {
  readonly detail: string;
  /** The time of the database that nodes share, in milliseconds since 1970; null for the embedded one. */
  readonly nowMs: number | null;
}

/**
 * Finds out whether the job store can be used, without its lock and without a change of it, also beside a service that has it
 * open. Throws an AppError (`STORE_…`, `DATABASE_…`) where it cannot.
 */
export async function probeStore({ data_dir: dataDir, database_url: url }: Config['jobs']): Promise<StoreState> {
  if (url === undefined) return { detail: await probeSqlite(dataDir), nowMs: null };
  const { probePostgres } = await import('./store/postgres/postgres-database.ts');
  const { address, nowMs } = await probePostgres(url);
  return { detail: `PostgreSQL at ${address}`, nowMs };
}

async function probeSqlite(dataDir: string): Promise<string> {
  const file = databaseFileOf(dataDir);
  try {
    await access(file, constants.R_OK | constants.W_OK);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return `${file}, which the first start makes`;
    if (!isSystemError(error)) throw error;
    throw new AppError('STORE_UNREADABLE', { file, problem: problemOf(error) }, { cause: error });
  }
  requireKnownFile(file);
  const pid = await notedOwner(dataDir);
  return pid === null || !isRunning(pid) ? file : `${file}, which the process ${pid} has open`;
}

/** Reads the version of a file that another process may have locked: as an immutable one it is opened without any lock. */
function requireKnownFile(file: string): void {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(`${pathToFileURL(file).href}?immutable=1`, { readOnly: true });
    const table = database.prepare("select 1 from sqlite_master where name = 'schema_versions'").get();
    if (table === undefined) return;
    const version = maxOf(database, 'version');
    if (version <= migrations.length || maxOf(database, 'needs_version') <= migrations.length) return;
    throw new AppError('STORE_NEWER', { file, version, known: migrations.length });
  } catch (error) {
    throw storeError(file, failureOf(error));
  } finally {
    database?.close();
  }
}

function maxOf(database: DatabaseSync, column: 'version' | 'needs_version'): number {
  return Number(database.prepare(`select max(${column}) as value from schema_versions`).get()?.['value'] ?? 0);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemErrorCode(error) === 'EPERM';
  }
}
