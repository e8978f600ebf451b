import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { Kysely, SqliteDialect, type SqliteStatement } from 'kysely';
import type { Database, Tables } from '../tables.ts';

/** How long opening waits for a process that is just ending to let go of the database. */
const LOCK_WAIT_MS = 1000;

/** The write-ahead log is cut back to this size after a checkpoint. */
const WAL_LIMIT_BYTES = 64 * 1024 * 1024;

/** The store has a few dozen statements; more would mean that values are written into their text. */
const MAX_STATEMENTS = 200;

/**
 * Opens the database for this process alone. The exclusive lock is taken before anything is read, and the operating
 * system lets go of it when the process ends in whatever way. FULL syncs the log at every commit: what was committed
 * survives a power cut.
 */
export function openDatabase(file: string): Database {
  const database = new DatabaseSync(file, { timeout: LOCK_WAIT_MS, enableForeignKeyConstraints: true });
  database.exec('pragma locking_mode = exclusive');
  database.exec('pragma journal_mode = wal');
  database.exec('pragma synchronous = full');
  // What is erased or deleted is overwritten: presigned addresses are secrets.
  database.exec('pragma secure_delete = on');
  database.exec(`pragma journal_size_limit = ${WAL_LIMIT_BYTES}`);
  database.exec('begin exclusive');
  database.exec('commit');
  const statements = new Map<string, SqliteStatement>();
  const prepare = (sql: string): SqliteStatement => {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    if (statements.size >= MAX_STATEMENTS) statements.clear();
    const statement = sql === 'rollback' ? rollbackOf(database) : statementOf(database.prepare(sql));
    statements.set(sql, statement);
    return statement;
  };
  return new Kysely<Tables>({ dialect: new SqliteDialect({ database: { prepare, close: () => database.close() } }) });
}

function statementOf(statement: StatementSync): SqliteStatement {
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...(parameters as SQLInputValue[])),
    run: (parameters) => statement.run(...(parameters as SQLInputValue[])),
    iterate: (parameters) => statement.iterate(...(parameters as SQLInputValue[])),
  };
}

/** SQLite rolls back by itself where the disk is full or failing; a second rollback would be an error. */
function rollbackOf(database: DatabaseSync): SqliteStatement {
  const run = () => {
    if (database.isTransaction) database.exec('rollback');
    return { changes: 0, lastInsertRowid: 0 };
  };
  return { reader: false, all: () => [], run, iterate: () => [].values() };
}
