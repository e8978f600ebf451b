import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Client } from 'pg';
import { backoffMs } from '#concurrency/retry.ts';
import type { Log } from '#telemetry/logger.ts';
import type { QueueEvent } from '../../queue/job-queue.ts';
import { databaseError } from './database-error.ts';
import { addressOf, type PostgresDatabase } from './postgres-database.ts';
import { clientConfig } from './postgres-pool.ts';

const CHANNEL = 'attestream';

/** Notifications in one statement, and the pause between two statements, in milliseconds. */
const PUBLISH_BATCH_SIZE = 1_000;
const PUBLISH_INTERVAL_MS = 10;

const RECONNECT_BACKOFF = { firstMs: 250, maxMs: 5_000 };
/** A connection that only listens does not notice that the server is gone. */
const HEARTBEAT_INTERVAL_MS = 5_000;

/** The names of events on the channel, which nodes of all releases share. */
const NAMES = { work: 'queued', finished: 'ended', cancelled: 'cancelled' } as const;

/**
 * Notifies every node of events, this one included, after a commit. Not in the transactions themselves: PostgreSQL commits
 * transactions that notify one after another in the whole database, each waiting for the disk. Notifications that arrive
 * while a statement runs share the next one.
 */
export class NotificationPublisher {
  readonly #database: PostgresDatabase;
  readonly #log: Log;
  readonly #pending = new Set<string>();
  #publishing: Promise<void> | null = null;

  constructor(database: PostgresDatabase, log: Log) {
    this.#database = database;
    this.#log = log;
  }

  publish(event: QueueEvent): void {
    this.#pending.add(JSON.stringify({ ...event, type: NAMES[event.type] }));
    this.#publishing ??= this.#publishAll();
  }

  /** Resolves when everything is published. To be called before the database is closed. */
  async close(): Promise<void> {
    await this.#publishing;
  }

  async #publishAll(): Promise<void> {
    while (this.#pending.size > 0) {
      const payloads = [...this.#pending].slice(0, PUBLISH_BATCH_SIZE);
      for (const payload of payloads) this.#pending.delete(payload);
      try {
        await this.#database.read((db) => notify(payloads).execute(db));
      } catch (error) {
        this.#log.warn({ err: error }, 'other nodes could not be notified; they poll');
      }
      await sleep(PUBLISH_INTERVAL_MS);
    }
    this.#publishing = null;
  }
}

/** Notifies without waiting for the disk, because notifications need not outlive the database. */
function notify(payloads: readonly string[]) {
  return sql`select set_config('synchronous_commit', 'off', true), pg_notify(${CHANNEL}, payload)
    from unnest(${payloads}::text[]) as payload`;
}

/**
 * Returns null for what nodes of this release do not send: other programs may use the channel, and later
 * releases other types.
 */
function eventOf(payload: string): QueueEvent | null {
  let parsed: { readonly type?: unknown; readonly jobId?: unknown } | null;
  try {
    parsed = JSON.parse(payload);
  } catch {
    return null;
  }
  const { type, jobId } = parsed ?? {};
  if (type === NAMES.work) return { type: 'work' };
  if (typeof jobId !== 'string') return null;
  if (type === NAMES.cancelled) return { type: 'cancelled', jobId };
  return type === NAMES.finished ? { type: 'finished', jobId } : null;
}

/** Receives the notifications of all nodes over its own connection, and reconnects when it is lost. */
export class NotificationListener {
  readonly #url: string;
  readonly #log: Log;
  readonly #onEvent: (event: QueueEvent) => void;
  readonly #stop = new AbortController();
  readonly #listening: Promise<void>;

  /** Starts to listen. There may be work after every connect: notifications may have been missed before. */
  constructor(url: string, log: Log, onEvent: (event: QueueEvent) => void) {
    this.#url = url;
    this.#log = log;
    this.#onEvent = onEvent;
    this.#listening = this.#listen();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#listening;
  }

  async #listen(): Promise<void> {
    const { signal } = this.#stop;
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        await this.#listenOnce(() => {
          failures = 1;
        });
      } catch (error) {
        const err = databaseError(addressOf(this.#url), error);
        this.#log.warn({ err }, 'the connection for notifications of other nodes was lost');
      }
      await sleep(backoffMs(failures, RECONNECT_BACKOFF), undefined, { signal }).catch(() => undefined);
    }
  }

  /** Resolves when it is closed; rejects when the connection is lost. */
  async #listenOnce(connected: () => void): Promise<void> {
    const { default: pg } = await import('pg');
    const client = new pg.Client(clientConfig(this.#url));
    const lost = Promise.withResolvers<never>();
    lost.promise.catch(() => undefined);
    client.on('error', lost.reject);
    client.on('end', () => lost.reject(new Error('connection ended by the server')));
    client.on('notification', ({ payload = '' }) => {
      const event = eventOf(payload);
      if (event !== null) this.#onEvent(event);
    });
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
      connected();
      this.#onEvent({ type: 'work' });
      await Promise.race([lost.promise, this.#heartbeat(client)]);
    } finally {
      await Promise.race([client.end().catch(() => undefined), sleep(1_000)]);
    }
  }

  async #heartbeat(client: Client): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await sleep(HEARTBEAT_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) await client.query('select 1');
    }
  }
}
