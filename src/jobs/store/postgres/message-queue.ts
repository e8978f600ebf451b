import assert from 'node:assert/strict';
import { sql } from 'kysely';
import type { CommandResponse, JobAttempt, PgBoss } from 'pg-boss';
import type { Log } from '#telemetry/logger.ts';
import type { InputId } from '../../job.ts';
import type { InputGroup } from '../queue-state.ts';
import type { QueuedInput } from '../submit-job.ts';
import type { Database } from '../tables.ts';
import { databaseError } from './database-error.ts';
import { ADVISORY_LOCKS, type PostgresDatabase } from './postgres-database.ts';

const QUEUE = 'inputs';
/** The schema of pg-boss, which creates and migrates it. */
const SCHEMA = 'attestream_deliveries';

/** The lease of a message without a heartbeat, in seconds; then another node receives it. The minimum of pg-boss. */
export const HEARTBEAT_SECONDS = 10;

/** Bound on the run time of an input, in seconds; then another node receives its message. The maximum of pg-boss. */
const MAX_RUN_SECONDS = 24 * 60 * 60 - 1;

/** Messages wait without a practical bound. */
const RETENTION_SECONDS = 10 * 366 * 24 * 60 * 60;

/** Never reached: the store counts the exits that fail an input. */
const MAX_RETRIES = 1_000;

const QUEUE_OPTIONS = {
  heartbeatSeconds: HEARTBEAT_SECONDS,
  expireInSeconds: MAX_RUN_SECONDS,
  retentionSeconds: RETENTION_SECONDS,
  retryLimit: MAX_RETRIES,
};

/** A job message: one input, leased to this node until it deletes the message or its heartbeats stop. */
export interface JobMessage extends InputId {
  readonly id: string;
  /** Identifies this lease of the message. */
  readonly retryCount: number;
}

/**
 * The queue of job messages, one for each input, in pg-boss. It leases messages to nodes; the store's own tables say what
 * an input is and how it finished. All methods but `renew` take the store's transaction, so that job records and messages
 * are written together.
 */
export class MessageQueue {
  readonly #boss: PgBoss;
  readonly #fromKysely: typeof import('pg-boss').fromKysely;
  readonly #address: string;

  private constructor(boss: PgBoss, fromKysely: typeof import('pg-boss').fromKysely, address: string) {
    this.#boss = boss;
    this.#address = address;
    this.#fromKysely = fromKysely;
  }

  /** Creates or migrates the tables of pg-boss, and starts its supervision. */
  static open(database: PostgresDatabase, log: Log): Promise<MessageQueue> {
    return database.read((db) => MessageQueue.#start(db, database, log));
  }

  static async #start(db: Database, database: PostgresDatabase, log: Log): Promise<MessageQueue> {
    const { fromKysely, PgBoss } = await import('pg-boss');
    const boss = new PgBoss({
      db: { executeSql: (text, values) => database.executeSql(text, values) },
      schema: SCHEMA,
      schedule: false,
      superviseIntervalSeconds: 1,
      monitorIntervalSeconds: 1,
      registerInstance: false,
      monitorVacuum: false,
      openTelemetry: { enabled: false },
    });
    boss.on('error', (error) => {
      // Some are copies that pg-boss makes of errors.
      const raised = error instanceof Error ? error : Object.assign(new Error(), error);
      log.warn({ err: databaseError(database.address, raised) }, 'the supervision of the message queue failed');
    });
    try {
      await whileAlone(db, async () => {
        await boss.start();
        await boss.createQueue(QUEUE, QUEUE_OPTIONS);
      });
    } catch (error) {
      await stop(boss);
      throw error;
    }
    return new MessageQueue(boss, fromKysely, database.address);
  }

  /** Sends messages of inputs. */
  async send(db: Database, inputs: readonly QueuedInput[]): Promise<void> {
    if (inputs.length > 0) await this.#boss.insert(QUEUE, inputs.map(insertOf), this.#within(db));
  }

  /** Leases up to `count` messages, none of the excluded groups: within the first bound on priorities, then within the next. */
  async fetch(
    db: Database,
    count: number,
    excluded: readonly InputGroup[],
    maxPriorities: readonly number[],
  ): Promise<readonly JobMessage[]> {
    const messages: JobMessage[] = [];
    for (const maxPriority of maxPriorities) {
      if (messages.length >= count) break;
      const jobs = await this.#boss.fetch<InputId>(QUEUE, {
        batchSize: count - messages.length,
        ignoreGroups: excluded.map(groupIdOf),
        maxPriority,
        ...this.#within(db),
      });
      messages.push(
        ...jobs.map(({ id, retryCount, data: { jobId, inputIndex } }) => ({ id, retryCount, jobId, inputIndex })),
      );
    }
    return messages;
  }

  /** Deletes messages, and returns the number of those whose lease had not expired. */
  async delete(db: Database, messages: readonly JobAttempt[]): Promise<number> {
    if (messages.length === 0) return 0;
    return affectedBy(await this.#boss.deleteJob(QUEUE, messages.map(attemptOf), this.#within(db)));
  }

  /** Sends the message again after a delay. Does nothing when its lease has expired: an input never has two messages. */
  async requeue(
    db: Database,
    message: JobMessage,
    queued: Omit<QueuedInput, keyof InputId>,
    delayMs: number,
  ): Promise<void> {
    if ((await this.delete(db, [message])) === 0) return;
    const insert = {
      ...insertOf({ ...message, ...queued }),
      ...(delayMs > 0 && { startAfter: Math.ceil(delayMs / 1000) }),
    };
    await this.#boss.insert(QUEUE, [insert], this.#within(db));
  }

  /** Renews the leases of messages, and returns those that had expired. */
  async renew(messages: readonly JobMessage[]): Promise<readonly JobMessage[]> {
    if (messages.length === 0 || (await this.#touchAll(messages)) === messages.length) return [];
    const expired: JobMessage[] = [];
    for (const message of messages) if ((await this.#touchAll([message])) === 0) expired.push(message);
    return expired;
  }

  /** Stops the supervision. To be called before the database is closed. */
  async close(): Promise<void> {
    await stop(this.#boss);
  }

  async #touchAll(messages: readonly JobMessage[]): Promise<number> {
    try {
      return affectedBy(await this.#boss.touch(QUEUE, messages.map(attemptOf)));
    } catch (error) {
      throw databaseError(this.#address, error);
    }
  }

  #within(db: Database) {
    return { db: this.#fromKysely(db) };
  }
}

/** Stops without waiting for work, and without closing the store's connections. */
async function stop(boss: PgBoss): Promise<void> {
  await boss.stop({ graceful: false, close: false });
}

/** Serializes the creation of the queue by nodes that start together. */
async function whileAlone(db: Database, work: () => Promise<void>): Promise<void> {
  await db.connection().execute(async (connection) => {
    try {
      await sql`select pg_advisory_lock(${ADVISORY_LOCKS.queueCreation})`.execute(connection);
      await work();
    } finally {
      // A connection that was lost has released the lock already.
      await sql`select pg_advisory_unlock(${ADVISORY_LOCKS.queueCreation})`.execute(connection).catch(() => undefined);
    }
  });
}

function insertOf({ jobId, inputIndex, priority, needs }: QueuedInput) {
  return { data: { jobId, inputIndex }, priority, group: { id: groupIdOf({ jobId, needs }) } };
}

/** Returns what messages are left out by: their jobs, each with what they need. */
function groupIdOf({ jobId, needs }: InputGroup): string {
  return [jobId, ...needs].join(' ');
}

function attemptOf({ id, retryCount }: JobAttempt): JobAttempt {
  return { id, retryCount };
}

/** Returns the number of messages that a command changed. pg-boss documents it with `JobAttempt`; its type omits it. */
function affectedBy(response: CommandResponse): number {
  const { affected } = response as { readonly affected?: unknown };
  assert(typeof affected === 'number', 'pg-boss reports how many jobs a command affected');
  return affected;
}
