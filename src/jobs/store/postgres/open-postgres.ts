import { sql } from 'kysely';
import { AppError } from '#errors/app-error.ts';
import { bringUpToDate } from '../migrate.ts';
import { type Migration, migrations } from '../migrations.ts';
import type { Database } from '../tables.ts';
import { openPool, type SafePool } from './postgres-pool.ts';
import { PostgresRunner } from './postgres-runner.ts';
import { refusePooler } from './refuse-pooler.ts';

/** The oldest server that the queue of deliveries runs on. */
const OLDEST_VERSION = 130_000;

/** Nodes that start together bring the tables up to date one after another; the number is only ever ours. */
const MIGRATION_LOCK = 7_235_512_094n;

/** An open database. */
export interface PostgresDatabase {
  readonly runner: PostgresRunner;
  readonly pool: SafePool;
  /** Host, port and name, for messages. */
  readonly place: string;
}

/**
 * Opens the database that nodes share, with its tables up to date. Rejects with an AppError that says why not, which never
 * holds the password. `maxConnections`: of this node.
 */
export async function openPostgres(
  url: string,
  maxConnections: number,
  steps: readonly Migration[] = migrations,
): Promise<PostgresDatabase> {
  const place = placeOf(url);
  await refusePooler(url, place);
  const pool = await openPool(url, maxConnections);
  const runner = new PostgresRunner(pool, place);
  try {
    await runner.read((db) => checkServer(db, place));
    await runner.transaction((db) => migrateAlone(db, place, steps));
    return { runner, pool, place };
  } catch (error) {
    await runner.close();
    throw error;
  }
}

/** The address of a database without its user and password. */
export function placeOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = hostname || (searchParams.get('host') ?? 'localhost');
  return `${host}${port === '' ? '' : `:${port}`}${pathname === '/' ? '' : pathname}`;
}

async function checkServer(db: Database, place: string): Promise<void> {
  const { rows } = await sql<{ version: number; read_only: string }>`
    select current_setting('server_version_num')::integer as version,
      current_setting('transaction_read_only') as read_only`.execute(db);
  const [server] = rows;
  if (server === undefined) return;
  const version = `${Math.floor(server.version / 10_000)}.${server.version % 10_000}`;
  if (server.version < OLDEST_VERSION) throw new AppError('DATABASE_TOO_OLD', { place, version });
  if (server.read_only === 'on') throw new AppError('DATABASE_READ_ONLY', { place });
}

async function migrateAlone(db: Database, place: string, steps: readonly Migration[]): Promise<void> {
  await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(db);
  await bringUpToDate(db, place, steps);
}
