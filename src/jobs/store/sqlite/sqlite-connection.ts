import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { AppError } from '#errors/app-error.ts';
import type { FromSqliteThread, SqliteThreadData, ToSqliteThread } from './sqlite-messages.ts';
import { storeError } from './store-error.ts';

/** What the thread allocates lives for one statement; a small nursery keeps it from growing by megabytes. */
const THREAD_YOUNG_MB = 4;

/** The rows of a statement, and how many it changed. */
export interface SqliteAnswer {
  readonly rows: readonly unknown[];
  readonly changes: number;
}

interface Waiting {
  resolve(answer: SqliteAnswer): void;
  reject(error: Error): void;
}

/** Also right in a build, where this module and the thread's are JavaScript. */
const THREAD_URL = new URL(`./sqlite-thread${extname(import.meta.url)}`, import.meta.url);

/**
 * The one connection to the database, held by its thread. Statements run in the order in which they are given; each
 * failure is an AppError that says what is wrong with the store, or a plain Error where the statement is.
 */
export class SqliteConnection {
  readonly #file: string;
  readonly #thread: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #opened = Promise.withResolvers<void>();
  #nextId = 1;
  #lost: AppError | null = null;

  constructor(file: string) {
    this.#file = file;
    const workerData: SqliteThreadData = { file };
    this.#thread = new Worker(THREAD_URL, {
      name: 'sqlite',
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: THREAD_YOUNG_MB },
    });
    // A refusal is told to whoever asks; before that it is no unhandled rejection.
    this.#opened.promise.catch(() => undefined);
    this.#thread.on('message', (message: FromSqliteThread) => this.#take(message));
    this.#thread.on('error', (cause) => this.#lose(cause));
    this.#thread.on('exit', () => this.#lose(undefined));
  }

  /** Settles when the database is open and locked, or refused. */
  opened(): Promise<void> {
    return this.#opened.promise;
  }

  query(sql: string, parameters: readonly unknown[]): Promise<SqliteAnswer> {
    if (this.#lost !== null) return Promise.reject(this.#lost);
    const id = this.#nextId++;
    const answer = new Promise<SqliteAnswer>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#send({ type: 'query', id, sql, parameters });
    return answer;
  }

  /** Lets go of the database after everything that was asked before. */
  async close(): Promise<void> {
    if (this.#lost !== null) return;
    const exit = once(this.#thread, 'exit');
    this.#send({ type: 'close' });
    await exit;
  }

  #send(message: ToSqliteThread): void {
    this.#thread.postMessage(message);
  }

  #take(message: FromSqliteThread): void {
    switch (message.type) {
      case 'opened':
        return this.#opened.resolve();
      case 'refused':
        return this.#opened.reject(storeError(this.#file, message.failure));
      case 'answer':
        return this.#settle(message.id)?.resolve(message);
      case 'failed':
        return this.#settle(message.id)?.reject(storeError(this.#file, message.failure));
    }
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  #lose(cause: unknown): void {
    this.#lost ??= new AppError('STORE_LOST', { file: this.#file }, { cause });
    this.#opened.reject(this.#lost);
    for (const { reject } of this.#waiting.values()) reject(this.#lost);
    this.#waiting.clear();
  }
}
