import assert from 'node:assert/strict';
import { type Stats, statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Kysely, SqliteDialect, type SqliteStatement, sql } from 'kysely';
import { migrate } from '../migrations.ts';
import { isRead, runMethod, STORE_METHODS } from '../store-methods.ts';
import type { Database, Tables } from '../tables.ts';
import {
  type CallAnswer,
  type FromSqliteThread,
  failureOf,
  type StoreCall,
  type ToSqliteThread,
} from './sqlite-messages.ts';

/** Bound on the writes that share a commit. */
const MAX_WRITES_PER_COMMIT = 64;

/**
 * Bound on the time of consecutive reads, in milliseconds, so that writes do not wait long. Reading a job of 10,000 inputs
 * takes longer than that, and its answer has megabytes.
 */
const READ_SLICE_MS = 10;

/** Bound on the time that erased data, such as the query of a presigned URL, stays in the write-ahead log. */
const CHECKPOINT_DELAY_MS = 5_000;

/**
 * Runs the calls of the service. All writes that arrived during a commit share the next commit, and so one sync of the disk.
 * Reads run between commits, and see what was committed before.
 */
class CallLoop {
  readonly #port: MessagePort;
  readonly #db: Database;
  readonly #requireFile: () => void;
  readonly #reads: StoreCall[] = [];
  readonly #writes: StoreCall[] = [];
  #closing = false;
  #working = false;
  #checkpointTimer: NodeJS.Timeout | null = null;
  #checkpointIsDue = false;

  /** `requireFile` throws where commits would not outlive this process. */
  constructor(port: MessagePort, db: Database, requireFile: () => void) {
    this.#port = port;
    this.#db = db;
    this.#requireFile = requireFile;
  }

  receive(message: ToSqliteThread): void {
    this.#enqueue(message);
    if (!this.#working) void this.#work();
  }

  #enqueue(message: ToSqliteThread): void {
    if (message.type === 'close') this.#closing = true;
    else for (const call of message.calls) (isRead(call.method) ? this.#reads : this.#writes).push(call);
  }

  async #work(): Promise<void> {
    this.#working = true;
    this.#drainPort();
    while (this.#reads.length > 0 || this.#writes.length > 0 || this.#checkpointIsDue) {
      await this.#runSlice();
      this.#drainPort();
    }
    this.#working = false;
    if (this.#closing) {
      clearTimeout(this.#checkpointTimer ?? undefined);
      await this.#db.destroy();
      this.#port.close();
    }
  }

  /** Receives the messages that arrived while the thread was busy: no event was emitted for them yet. */
  #drainPort(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port) as { message: ToSqliteThread } | undefined;
      if (received === undefined) return;
      this.#enqueue(received.message);
    }
  }

  /** Runs reads for a bounded time, then one commit. */
  async #runSlice(): Promise<void> {
    const answers = await this.#runReads();
    if (answers.length > 0) this.#answer(answers);
    const writes = this.#writes.splice(0, MAX_WRITES_PER_COMMIT);
    if (writes.length > 0) {
      // Thrown errors end the thread, and so the service: a new start makes or finds the database that then exists.
      this.#requireFile();
      this.#answer(await this.#commit(writes));
      this.#scheduleCheckpoint();
    }
    if (this.#checkpointIsDue) await this.#checkpoint();
  }

  #scheduleCheckpoint(): void {
    this.#checkpointTimer ??= setTimeout(() => {
      this.#checkpointTimer = null;
      this.#checkpointIsDue = true;
      if (!this.#working) void this.#work();
    }, CHECKPOINT_DELAY_MS).unref();
  }

  async #checkpoint(): Promise<void> {
    this.#checkpointIsDue = false;
    try {
      await sql`pragma wal_checkpoint(truncate)`.execute(this.#db);
    } catch {
      // The disk is full or failing. The next write reports that, and schedules another checkpoint.
    }
  }

  async #runReads(): Promise<CallAnswer[]> {
    const answers: CallAnswer[] = [];
    const untilMs = performance.now() + READ_SLICE_MS;
    while (performance.now() < untilMs) {
      const call = this.#reads.shift();
      if (call === undefined) break;
      answers.push(await this.#read(call));
    }
    return answers;
  }

  async #read({ id, method, args }: StoreCall): Promise<CallAnswer> {
    try {
      return { id, value: await runMethod(this.#db, method, args) };
    } catch (error) {
      return { id, failure: failureOf(error) };
    }
  }

  /** Runs writes in one transaction. When one of them fails, each is run in a transaction of its own. */
  async #commit(writes: readonly StoreCall[]): Promise<CallAnswer[]> {
    try {
      return await this.#db.transaction().execute(async (transaction) => {
        const answers: CallAnswer[] = [];
        for (const { id, method, args } of writes)
          answers.push({ id, value: await runMethod(transaction, method, args) });
        return answers;
      });
    } catch (error) {
      const [first, ...others] = writes;
      if (first !== undefined && others.length === 0) return [{ id: first.id, failure: failureOf(error) }];
      const answers: CallAnswer[] = [];
      for (const call of writes) answers.push(...(await this.#commit([call])));
      return answers;
    }
  }

  #answer(answers: readonly CallAnswer[]): void {
    this.#port.postMessage({ type: 'answers', answers } satisfies FromSqliteThread);
  }
}

/** `file`: the database, in an existing folder. */
async function runThread(port: MessagePort, file: string): Promise<void> {
  const send = (message: FromSqliteThread) => port.postMessage(message);
  let db: Database | undefined;
  try {
    db = openDatabase(file);
    await migrate(db, file);
    const loop = new CallLoop(port, db, fileCheck(file));
    port.on('message', (message: ToSqliteThread) => loop.receive(message));
    send({ type: 'opened', methods: STORE_METHODS });
  } catch (error) {
    await db?.destroy();
    send({ type: 'refused', failure: failureOf(error) });
  }
}

/**
 * Returns a function that throws where the path no longer leads to the file that is open: its folder was removed, renamed or
 * hidden by a mount. SQLite goes on writing to a file that no later start would find.
 */
function fileCheck(file: string): () => void {
  const opened = statSync(file);
  const isOpened = (found: Stats | undefined) => found?.ino === opened.ino && found.dev === opened.dev;
  return () => {
    if (!isOpened(statSync(file, { throwIfNoEntry: false }))) throw new Error('the file was removed or replaced');
  };
}

/** Time to wait for the lock of a process that is exiting, in milliseconds. */
const LOCK_TIMEOUT_MS = 1000;

/** The size that the write-ahead log is truncated to after a checkpoint. */
const MAX_WAL_BYTES = 64 * 1024 * 1024;

/** Bound on the cached statements. The store has a few dozen; more would mean that their texts contain values. */
const MAX_STATEMENTS = 200;

/**
 * Opens the database for this process alone. The exclusive lock is taken before anything is read, and the operating system
 * releases it when the process exits. `synchronous=full` syncs the log at every commit, so that commits survive a power cut.
 */
function openDatabase(file: string): Database {
  const database = new DatabaseSync(file, { timeout: LOCK_TIMEOUT_MS, enableForeignKeyConstraints: true });
  database.exec('pragma locking_mode = exclusive');
  database.exec('pragma journal_mode = wal');
  database.exec('pragma synchronous = full');
  // Overwrites erased and deleted data: presigned addresses are secrets.
  database.exec('pragma secure_delete = on');
  database.exec(`pragma journal_size_limit = ${MAX_WAL_BYTES}`);
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

/** Prepares a rollback that does nothing when SQLite has rolled back by itself, as it does on a full or failing disk. */
function rollbackOf(database: DatabaseSync): SqliteStatement {
  const run = () => {
    if (database.isTransaction) database.exec('rollback');
    return { changes: 0, lastInsertRowid: 0 };
  };
  return { reader: false, all: () => [], run, iterate: () => [].values() };
}

assert(parentPort !== null, 'this module runs on a thread of its own');
await runThread(parentPort, workerData as string);
