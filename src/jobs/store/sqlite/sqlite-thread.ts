/**
 * The thread that SQLite runs on. node:sqlite is synchronous, and a sync of the disk can stall for seconds on a busy
 * machine: here it stalls this thread only.
 */
import assert from 'node:assert/strict';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { FromSqliteThread, SqliteThreadData, ToSqliteThread } from './sqlite-messages.ts';

/** How long opening waits for a process that is just ending to let go of the database. */
const LOCK_WAIT_MS = 1000;

/** The write-ahead log is cut back to this size after a checkpoint. */
const WAL_LIMIT_BYTES = 64 * 1024 * 1024;

/** The store has a few dozen statements; more would mean that values are written into their text. */
const MAX_STATEMENTS = 200;

assert(parentPort !== null, 'this module runs on a thread of its own');
const port = parentPort;
const statements = new Map<string, StatementSync>();

try {
  const database = open((workerData as SqliteThreadData).file);
  port.on('message', (message: ToSqliteThread) => answer(database, message));
  send({ type: 'opened' });
} catch (error) {
  send({ type: 'refused', failure: failureOf(error) });
}

function send(message: FromSqliteThread): void {
  port.postMessage(message);
}

/**
 * Opens the database for this process alone. The exclusive lock is taken before anything is read, and the operating
 * system lets go of it when the process ends in whatever way. FULL syncs the log at every commit: what was committed
 * survives a power cut.
 */
function open(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: LOCK_WAIT_MS, enableForeignKeyConstraints: true });
  database.exec('pragma locking_mode = exclusive');
  database.exec('pragma journal_mode = wal');
  database.exec('pragma synchronous = full');
  database.exec(`pragma journal_size_limit = ${WAL_LIMIT_BYTES}`);
  database.exec('begin exclusive');
  database.exec('commit');
  return database;
}

function answer(database: DatabaseSync, message: ToSqliteThread): void {
  switch (message.type) {
    case 'query':
      return answerQuery(database, message);
    case 'close':
      database.close();
      port.close();
      return;
  }
}

function answerQuery(database: DatabaseSync, { id, sql, parameters }: ToSqliteThread & { type: 'query' }): void {
  try {
    // SQLite rolls back by itself where the disk is full or failing; a second rollback would be an error.
    if (sql === 'rollback' && !database.isTransaction) return send({ type: 'answer', id, rows: [], changes: 0 });
    send({ type: 'answer', id, ...query(database, sql, parameters) });
  } catch (error) {
    send({ type: 'failed', id, failure: failureOf(error) });
  }
}

function query(
  database: DatabaseSync,
  sql: string,
  parameters: readonly unknown[],
): { readonly rows: readonly unknown[]; readonly changes: number } {
  const statement = prepared(database, sql);
  const values = parameters as readonly SQLInputValue[];
  if (statement.columns().length > 0) {
    const rows = statement.all(...values);
    return { rows, changes: rows.length };
  }
  return { rows: [], changes: Number(statement.run(...values).changes) };
}

function prepared(database: DatabaseSync, sql: string): StatementSync {
  const known = statements.get(sql);
  if (known !== undefined) return known;
  if (statements.size >= MAX_STATEMENTS) statements.clear();
  const statement = database.prepare(sql);
  statements.set(sql, statement);
  return statement;
}

function failureOf(error: unknown): { readonly code: number; readonly message: string } {
  const { errcode, message } = error as { errcode?: number; message?: string };
  return { code: errcode ?? 0, message: message ?? String(error) };
}
