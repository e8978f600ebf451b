import { Kysely, PostgresDialect, sql } from 'kysely';
import type { Client } from 'pg';
import { type RetryOptions, retry } from '#concurrency/retry.ts';
import { AppError } from '#errors/app-error.ts';
import { databaseTimeMs } from '../dialect.ts';
import { type Migration, migrate, migrations, requireKnownVersion } from '../migrations.ts';
import type { Database, Tables } from '../tables.ts';
import { databaseError, isConflict, isConnectionCut } from './database-error.ts';
import { clientConfig, PostgresPool } from './postgres-pool.ts';

/**
 * The keys of the advisory locks, which serialize steps of nodes that start together. Advisory locks are shared by
 * everything in a database, so these are in one place, and no two are alike.
 */
export const ADVISORY_LOCKS = {
  migration: 7_235_512_094n,
  queueCreation: 7_235_512_095n,
  nodeRegistration: 7_235_512_096n,
};

/** Retries of a transaction that conflicts with others. */
const TRANSACTION_RETRIES: RetryOptions = {
  backoff: { firstMs: 10, maxMs: 80 },
  maxAttempts: 8,
  isTransient: isConflict,
};

/** Retries of a read whose connection is cut: a pool may contain several that were cut together. */
const READ_RETRIES: RetryOptions = {
  backoff: { firstMs: 20, maxMs: 80 },
  maxAttempts: 5,
  isTransient: isConnectionCut,
};

/** The PostgreSQL database of the store, with its retries. Methods reject with an AppError when the database cannot be used. */
export class PostgresDatabase {
  /** Host, port and name, for messages. */
  readonly address: string;
  readonly #db: Database;
  readonly #pool: PostgresPool;

  constructor(pool: PostgresPool, address: string) {
    this.#db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
    this.#pool = pool;
    this.address = address;
  }

  /** Reads outside of a transaction. Retries when the connection is cut, because a read changes nothing. */
  read<T>(query: (db: Database) => Promise<T>): Promise<T> {
    return this.#retry(() => query(this.#db), READ_RETRIES);
  }

  /** Runs `work` in one transaction. Retries on conflicts: `work` may run several times, and only the last run is committed. */
  transaction<T>(work: (db: Database) => Promise<T>): Promise<T> {
    return this.#retry(() => this.#db.transaction().execute(work), TRANSACTION_RETRIES);
  }

  /**
   * Runs statements of pg-boss outside of the store's transactions. Its supervision sends several in one text and needs the
   * rows of each, which Kysely does not return.
   */
  executeSql(text: string, values?: unknown[]): Promise<{ rows: unknown[] }> {
    return this.#pool.query(text, values);
  }

  close(): Promise<void> {
    return this.#db.destroy();
  }

  async #retry<T>(task: () => Promise<T>, retries: RetryOptions): Promise<T> {
    try {
      return await retry(task, retries);
    } catch (error) {
      throw databaseError(this.address, error);
    }
  }
}

/** The oldest server that pg-boss supports, as `server_version_num`. */
const MIN_SERVER_VERSION = 130_000;

/** PgBouncer's refusal of a transaction when it pools by statement. */
const POOLED_BY_STATEMENT = /statement pooling/i;

/** Probes for a pooler. Other clients of the pooler may interleave: a single probe could miss it. */
const POOLER_PROBES = 5;

/**
 * Opens the database that nodes share, and migrates its tables. `maxConnections` bounds the connections of this node. Throws
 * an AppError of the catalogue (`DATABASE_…`, `STORE_NEWER`), which never contains the password.
 */
export async function openPostgres(
  url: string,
  maxConnections: number,
  steps: readonly Migration[] = migrations,
): Promise<PostgresDatabase> {
  const address = addressOf(url);
  await refusePooler(url, address);
  const database = new PostgresDatabase(await PostgresPool.open(url, maxConnections), address);
  try {
    await database.read((db) => checkServer(db, address));
    await database.transaction((db) => migrateAlone(db, address, steps));
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/**
 * Opens the database and closes it, and changes nothing. Returns its address and, in milliseconds since 1970, its time. Throws
 * what `openPostgres` throws.
 */
export async function probePostgres(url: string): Promise<{ readonly address: string; readonly nowMs: number }> {
  const address = addressOf(url);
  await refusePooler(url, address);
  const database = new PostgresDatabase(await PostgresPool.open(url, 1), address);
  try {
    return await database.read(async (db) => {
      await checkServer(db, address);
      if (await hasTables(db)) await requireKnownVersion(db, address);
      else await requireCreation(db, address);
      return { address, nowMs: await databaseTimeMs(db) };
    });
  } finally {
    await database.close();
  }
}

async function hasTables(db: Database): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`select to_regclass('schema_versions') is not null as there`.execute(
    db,
  );
  return rows[0]?.there === true;
}

/** Throws `DATABASE_FORBIDS` where the user could not make the tables. */
async function requireCreation(db: Database, address: string): Promise<void> {
  const { rows } = await sql<{ allowed: boolean }>`
    select has_database_privilege(current_database(), 'CREATE')
      and coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) as allowed`.execute(db);
  if (rows[0]?.allowed === true) return;
  throw new AppError('DATABASE_FORBIDS', { address, problem: 'its user may not create tables and schemas in it' });
}

/** Returns the address of a database without its user and password. */
export function addressOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = hostname || (searchParams.get('host') ?? 'localhost');
  return `${host}${port === '' ? '' : `:${port}`}${pathname === '/' ? '' : pathname}`;
}

/** Throws `DATABASE_TOO_OLD` or `DATABASE_READ_ONLY`. */
async function checkServer(db: Database, address: string): Promise<void> {
  const { rows } = await sql<{ version: number; read_only: string }>`
    select current_setting('server_version_num')::integer as version,
      current_setting('transaction_read_only') as read_only`.execute(db);
  const [server] = rows;
  if (server === undefined) return;
  const version = `${Math.floor(server.version / 10_000)}.${server.version % 10_000}`;
  if (server.version < MIN_SERVER_VERSION) throw new AppError('DATABASE_TOO_OLD', { address, version });
  if (server.read_only === 'on') throw new AppError('DATABASE_READ_ONLY', { address });
}

async function migrateAlone(db: Database, address: string, steps: readonly Migration[]): Promise<void> {
  await sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.migration})`.execute(db);
  await migrate(db, address, steps);
}

/**
 * Throws `DATABASE_POOLED` for a pooler that gives a server session to another client after every transaction, as PgBouncer
 * does with `pool_mode = transaction`: LISTEN does not work there, and settings reach other clients. Probes on connections
 * of its own, whose session state it does not change.
 */
async function refusePooler(url: string, address: string): Promise<void> {
  const { default: pg } = await import('pg');
  const clients: Client[] = [];
  const connect = async () => {
    const client = new pg.Client(clientConfig(url));
    clients.push(client);
    // The next query reports a loss.
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  try {
    if (await shareSession(await connect(), await connect())) throw new AppError('DATABASE_POOLED', { address });
  } catch (error) {
    const isPooled = error instanceof Error && POOLED_BY_STATEMENT.test(error.message);
    throw isPooled ? new AppError('DATABASE_POOLED', { address }, { cause: error }) : databaseError(address, error);
  } finally {
    await Promise.allSettled(clients.map((client) => client.end()));
  }
}

/** Returns true when two open connections share a session of the server, or one of them uses several. */
async function shareSession(first: Client, second: Client): Promise<boolean> {
  for (let probe = 0; probe < POOLER_PROBES; probe += 1) {
    const before = await sessionOf(first);
    await second.query('begin');
    const others = await sessionOf(second);
    const isTaken = others === before;
    // When it is taken, the first connection would wait until it is free.
    const after = isTaken ? before : await sessionOf(first);
    await second.query('rollback');
    if (isTaken || after !== before) return true;
  }
  return false;
}

/** Returns the process of the server that serves a connection. */
async function sessionOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid ?? 0;
}
