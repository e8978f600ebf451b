import assert from 'node:assert/strict';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { sql } from 'kysely';
import { reads, writes } from '../actions.ts';
import type { Database } from '../tables.ts';
import { failureOf } from './action-failure.ts';
import type { ActionAnswer, ActionOrder, FromSqliteThread, ToSqliteThread } from './sqlite-messages.ts';

type Action = (db: Database, ...given: readonly unknown[]) => Promise<unknown>;

/** At most so many writes share a commit. */
const MAX_GROUP = 64;

/**
 * Changes wait for so much reading at most, and for what is being read then; and no more is told in one message. To look up
 * a job of 10,000 inputs takes longer, and is megabytes.
 */
const LOOKING_MS = 10;

/** What was erased, such as the query of a presigned URL, stays in the write-ahead log for so long at most. */
const LOG_CUT_AFTER_MS = 5_000;

/**
 * Runs what it is asked for in groups: all that has come meanwhile shares one commit, and so one sync of the disk. What
 * only reads does not wait for it, and sees what was committed before.
 */
export class ActionLoop {
  readonly #port: MessagePort;
  readonly #db: Database;
  readonly #looks: ActionOrder[] = [];
  readonly #changes: ActionOrder[] = [];
  #closing = false;
  #working = false;
  #logCut: NodeJS.Timeout | null = null;
  #logCutIsDue = false;

  constructor(port: MessagePort, db: Database) {
    this.#port = port;
    this.#db = db;
  }

  take(message: ToSqliteThread): void {
    this.#note(message);
    if (!this.#working) void this.#work();
  }

  #note(message: ToSqliteThread): void {
    if (message.type === 'close') this.#closing = true;
    else for (const order of message.orders) (order.name in reads ? this.#looks : this.#changes).push(order);
  }

  async #work(): Promise<void> {
    this.#working = true;
    this.#receive();
    while (this.#looks.length > 0 || this.#changes.length > 0 || this.#logCutIsDue) {
      await this.#runSome();
      this.#receive();
    }
    this.#working = false;
    if (this.#closing) {
      clearTimeout(this.#logCut ?? undefined);
      await this.#db.destroy();
      this.#port.close();
    }
  }

  /** What came while the thread was busy has not been told to the listener yet. */
  #receive(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port) as { message: ToSqliteThread } | undefined;
      if (received === undefined) return;
      this.#note(received.message);
    }
  }

  /** What only reads, for a while, and one commit: what comes to be read meanwhile waits for no other. */
  async #runSome(): Promise<void> {
    const looks = await this.#lookAWhile();
    if (looks.length > 0) this.#answer(looks);
    const changes = this.#changes.splice(0, MAX_GROUP);
    if (changes.length > 0) this.#answer(await this.#commit(changes));
    if (changes.length > 0) this.#cutLogSoon();
    if (this.#logCutIsDue) await this.#cutLog();
  }

  #cutLogSoon(): void {
    this.#logCut ??= setTimeout(() => {
      this.#logCut = null;
      this.#logCutIsDue = true;
      if (!this.#working) void this.#work();
    }, LOG_CUT_AFTER_MS).unref();
  }

  async #cutLog(): Promise<void> {
    this.#logCutIsDue = false;
    try {
      await sql`pragma wal_checkpoint(truncate)`.execute(this.#db);
    } catch {
      // The disk is full or failing, which the next change will tell, and have the log cut later.
    }
  }

  async #lookAWhile(): Promise<ActionAnswer[]> {
    const answers: ActionAnswer[] = [];
    const untilMs = performance.now() + LOOKING_MS;
    while (performance.now() < untilMs) {
      const order = this.#looks.shift();
      if (order === undefined) break;
      answers.push(await this.#look(order));
    }
    return answers;
  }

  async #look(order: ActionOrder): Promise<ActionAnswer> {
    try {
      return { id: order.id, value: await actionOf(reads, order)(this.#db) };
    } catch (error) {
      return { id: order.id, failure: failureOf(error) };
    }
  }

  /** Where one of a group fails, each is run on its own. */
  async #commit(group: readonly ActionOrder[]): Promise<ActionAnswer[]> {
    try {
      return await this.#db.transaction().execute(async (transaction) => {
        const answers: ActionAnswer[] = [];
        for (const order of group) answers.push({ id: order.id, value: await actionOf(writes, order)(transaction) });
        return answers;
      });
    } catch (error) {
      const [first, ...others] = group;
      if (first !== undefined && others.length === 0) return [{ id: first.id, failure: failureOf(error) }];
      const answers: ActionAnswer[] = [];
      for (const order of group) answers.push(...(await this.#commit([order])));
      return answers;
    }
  }

  #answer(answers: readonly ActionAnswer[]): void {
    this.#port.postMessage({ type: 'answers', answers } satisfies FromSqliteThread);
  }
}

function actionOf(actions: object, { name, given }: ActionOrder): (db: Database) => Promise<unknown> {
  const action = (actions as Readonly<Record<string, Action>>)[name];
  assert(action !== undefined, `the store has no action "${name}"`);
  return (db) => action(db, ...given);
}
