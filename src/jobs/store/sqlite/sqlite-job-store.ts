import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { AppError } from '#errors/app-error.ts';
import { notedOwner, noteOwner, prepareDataFolder } from '../../data-folder.ts';
import type { JobStore } from '../job-store.ts';
import type { StoreMethod } from '../store-methods.ts';
import {
  type CallAnswer,
  type FromSqliteThread,
  type StoreCall,
  storeError,
  type ToSqliteThread,
} from './sqlite-messages.ts';

/**
 * Bound on the young generation of the thread's heap, in MiB. Its objects live for one call; a small one keeps
 * it from growing.
 */
const MAX_YOUNG_GENERATION_MIB = 4;

/** The delay of a batched call, in milliseconds. Measured: a sync of the disk takes 1 to 3 ms, and delays syncs of outputs. */
const BATCH_DELAY_MS = 25;

/** The extension is that of this module, because a build has JavaScript files. */
const THREAD_URL = new URL(`./sqlite-thread${extname(import.meta.url)}`, import.meta.url);

export interface SqliteStore extends JobStore {
  /** Returns the same store for calls that nobody waits for: they may be delayed to share a commit with others. */
  batched(): JobStore;
}

/**
 * Opens the embedded database in the data folder, for this process alone, with its tables migrated. Throws an AppError
 * of the catalogue (`STORE_…`) when it cannot be used. `lost` is called with `STORE_LOST` when the thread exits before
 * it is closed: no call succeeds from then on.
 */
export async function openSqlite(
  folder: string,
  lost: (error: AppError) => void = () => undefined,
): Promise<SqliteStore> {
  const thread = new SqliteThread(await prepareDataFolder(folder));
  try {
    const methods = await thread.opened;
    await noteOwner(folder);
    thread.onLost(lost);
    return proxyOf(thread, methods);
  } catch (error) {
    await thread.close();
    if (!(error instanceof AppError) || error.reason !== 'STORE_IN_USE') throw error;
    throw new AppError('STORE_IN_USE', { folder, pid: await notedOwner(folder) }, { cause: error });
  }
}

/** Returns a store whose methods run on the thread, where `store-methods.ts` has their implementations. */
function proxyOf(thread: SqliteThread, methods: readonly StoreMethod[], isBatched = false): SqliteStore {
  const call = (method: StoreMethod) => [method, (...args: unknown[]) => thread.call(method, args, isBatched)];
  return {
    ...(Object.fromEntries(methods.map(call)) as Pick<JobStore, StoreMethod>),
    batched: () => proxyOf(thread, methods, true),
    close: () => thread.close(),
  };
}

/** The service's end of the thread that has the database open. */
class SqliteThread {
  readonly #file: string;
  readonly #thread: Worker;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #opened = Promise.withResolvers<readonly StoreMethod[]>();
  /**
   * Resolves with the methods that the thread runs when the database is open, locked and migrated. Rejects with an AppError
   * when it is refused.
   */
  readonly opened = this.#opened.promise;
  #calls: StoreCall[] = [];
  #sending: 'next tick' | NodeJS.Timeout | null = null;
  #nextId = 1;
  #lost: AppError | null = null;
  #isClosing = false;

  constructor(file: string) {
    this.#file = file;
    this.#thread = new Worker(THREAD_URL, {
      name: 'sqlite',
      workerData: file,
      resourceLimits: { maxYoungGenerationSizeMb: MAX_YOUNG_GENERATION_MIB },
    });
    this.#thread.on('message', (message: FromSqliteThread) => this.#receive(message));
    this.#thread.on('error', (cause) => this.#lose(cause));
    this.#thread.on('exit', () => this.#lose(undefined));
  }

  /** Calls a function when the thread exits before it is closed. */
  onLost(lost: (error: AppError) => void): void {
    this.#thread.once('exit', () => {
      if (!this.#isClosing && this.#lost !== null) lost(this.#lost);
    });
  }

  /** Runs a method of the store. Rejects with an AppError when the database fails, or an Error when the statement is wrong. */
  call(method: StoreMethod, args: readonly unknown[], isBatched: boolean): Promise<unknown> {
    if (this.#lost !== null) return Promise.reject(this.#lost);
    const id = this.#nextId++;
    const answer = Promise.withResolvers<unknown>();
    this.#pending.set(id, answer);
    this.#calls.push({ id, method, args });
    this.#scheduleSend(isBatched);
    return answer.promise;
  }

  async close(): Promise<void> {
    if (this.#lost !== null) return;
    this.#isClosing = true;
    const exit = once(this.#thread, 'exit');
    this.#flush();
    this.#send({ type: 'close' });
    await exit;
  }

  /** Collects the calls of one turn of the event loop, because messages between threads are expensive. */
  #scheduleSend(isBatched: boolean): void {
    if (isBatched) this.#sending ??= setTimeout(() => this.#flush(), BATCH_DELAY_MS);
    else if (this.#sending !== 'next tick') {
      if (this.#sending !== null) clearTimeout(this.#sending);
      this.#sending = 'next tick';
      process.nextTick(() => this.#flush());
    }
  }

  #flush(): void {
    if (this.#sending !== 'next tick' && this.#sending !== null) clearTimeout(this.#sending);
    this.#sending = null;
    const calls = this.#calls;
    this.#calls = [];
    if (calls.length > 0) this.#send({ type: 'run', calls });
  }

  #send(message: ToSqliteThread): void {
    this.#thread.postMessage(message);
  }

  #receive(message: FromSqliteThread): void {
    switch (message.type) {
      case 'opened':
        return this.#opened.resolve(message.methods);
      case 'refused':
        return this.#opened.reject(storeError(this.#file, message.failure));
      case 'answers':
        for (const answer of message.answers) this.#settle(answer);
    }
  }

  #settle({ id, value, failure }: CallAnswer): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (failure === undefined) pending?.resolve(value);
    else pending?.reject(storeError(this.#file, failure));
  }

  #lose(cause: unknown): void {
    this.#lost ??= new AppError('STORE_LOST', { file: this.#file }, { cause });
    this.#opened.reject(this.#lost);
    for (const { reject } of this.#pending.values()) reject(this.#lost);
    this.#pending.clear();
  }
}
