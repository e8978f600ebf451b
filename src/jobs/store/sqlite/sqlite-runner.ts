import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { AppError } from '#errors/app-error.ts';
import type { ActionName, ActionRunner, AnswerOf, GivenTo } from '../actions.ts';
import type {
  ActionAnswer,
  ActionOrder,
  FromSqliteThread,
  SqliteThreadData,
  ToSqliteThread,
} from './sqlite-messages.ts';
import { storeError } from './store-error.ts';

/** What the thread allocates lives for one action; a small nursery keeps it from growing by megabytes. */
const THREAD_YOUNG_MB = 4;

/** How long an action in no hurry waits for others. Measured: a sync of the disk takes 1 to 3 ms, and holds up those of outputs. */
const PATIENCE_MS = 25;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Also right in a build, where this module and the thread's are JavaScript. */
const THREAD_URL = new URL(`./sqlite-thread${extname(import.meta.url)}`, import.meta.url);

/**
 * Has the actions run on the thread that holds the database. Each failure is an AppError that says what is wrong with
 * the store, or a plain Error where the action is.
 */
export class SqliteRunner implements ActionRunner {
  readonly #file: string;
  readonly #thread: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #opened = Promise.withResolvers<void>();
  #orders: ActionOrder[] = [];
  #sending: 'at once' | NodeJS.Timeout | null = null;
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

  /** Settles when the database is open, locked and up to date, or refused. */
  opened(): Promise<void> {
    return this.#opened.promise;
  }

  run<Name extends ActionName>(name: Name, given: GivenTo<Name>, hurry: boolean): Promise<AnswerOf<Name>> {
    if (this.#lost !== null) return Promise.reject(this.#lost);
    const id = this.#nextId++;
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#orders.push({ id, name, given });
    this.#sendSoon(hurry);
    return answer as Promise<AnswerOf<Name>>;
  }

  async close(): Promise<void> {
    if (this.#lost !== null) return;
    const exit = once(this.#thread, 'exit');
    this.#sendOrders();
    this.#send({ type: 'close' });
    await exit;
  }

  /** Messages between threads are dear: what is asked for in one turn of the event loop goes as one. */
  #sendSoon(hurry: boolean): void {
    if (!hurry) this.#sending ??= setTimeout(() => this.#sendOrders(), PATIENCE_MS);
    else if (this.#sending !== 'at once') {
      if (this.#sending !== null) clearTimeout(this.#sending);
      this.#sending = 'at once';
      process.nextTick(() => this.#sendOrders());
    }
  }

  #sendOrders(): void {
    if (this.#sending !== 'at once' && this.#sending !== null) clearTimeout(this.#sending);
    this.#sending = null;
    const orders = this.#orders;
    this.#orders = [];
    if (orders.length > 0) this.#send({ type: 'run', orders });
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
      case 'answers':
        for (const answer of message.answers) this.#settle(answer);
    }
  }

  #settle({ id, value, failure }: ActionAnswer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (failure === undefined) waiting?.resolve(value);
    else waiting?.reject(storeError(this.#file, failure));
  }

  #lose(cause: unknown): void {
    this.#lost ??= new AppError('STORE_LOST', { file: this.#file }, { cause });
    this.#opened.reject(this.#lost);
    for (const { reject } of this.#waiting.values()) reject(this.#lost);
    this.#waiting.clear();
  }
}
