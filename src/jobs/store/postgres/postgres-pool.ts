import type { PostgresPoolClient as KyselyClient, PostgresPool as KyselyPool } from 'kysely';
import type { ClientBase, ClientConfig, Pool, PoolClient, QueryResult } from 'pg';
import { Semaphore } from '#concurrency/semaphore.ts';
import { isConnectionLoss } from './database-error.ts';

/** Bounds on connecting and on a statement, in milliseconds. A network partition looks like silence. */
const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 15_000;

/** Bound on the wait for a free connection, in milliseconds: longer than a statement, so that a lost one fails before. */
const WAIT_TIMEOUT_MS = 20_000;

/** The time after which an idle connection is closed, in milliseconds. */
const IDLE_TIMEOUT_MS = 30_000;

/** Object identifiers of the types that the driver returns as text, because they may exceed JavaScript's safe integers. */
const INT8 = 20;
const NUMERIC = 1700;

/** The transaction of a lost client must not keep its locks for longer than the client waits for an answer. */
const SESSION_SETTINGS = `set idle_in_transaction_session_timeout = ${STATEMENT_TIMEOUT_MS}`;

/** Returns the driver's settings for every connection of a node. */
export function clientConfig(url: string): ClientConfig {
  return {
    connectionString: url,
    application_name: 'attestream',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS,
    keepAlive: true,
  };
}

/**
 * A pool of connections that never reuses one that was lost or stopped answering. A caller waits for a free connection
 * first in, first out, within a bound: while the database is cut off, look-ups would pile up. Its connections have neither cursors
 * nor the cancellation of queries, which Kysely knows and the store does not use.
 */
export class PostgresPool implements KyselyPool {
  readonly options = {};
  readonly #pool: Pool;
  /** A permit for each connection. */
  readonly #connections: Semaphore;
  readonly #waitTimeoutMs: number;

  private constructor(pool: Pool, max: number, waitTimeoutMs: number) {
    this.#pool = pool;
    this.#connections = new Semaphore(max);
    this.#waitTimeoutMs = waitTimeoutMs;
  }

  /** Makes a pool of at most `max` connections. Connects when one is needed. */
  static async open(url: string, max: number, waitTimeoutMs = WAIT_TIMEOUT_MS): Promise<PostgresPool> {
    const { default: pg } = await import('pg');
    const types = {
      getTypeParser: (id: number, format?: 'text' | 'binary') =>
        // Counts and sizes, all below 2^53.
        id === INT8 || id === NUMERIC ? Number : pg.types.getTypeParser(id, format as 'text'),
    };
    // A statement, because poolers refuse unknown settings in the first message of a connection.
    const onConnect = async (client: ClientBase) => void (await client.query(SESSION_SETTINGS));
    const options = { types: types as never, max, idleTimeoutMillis: IDLE_TIMEOUT_MS, onConnect };
    const pool = new pg.Pool({ ...clientConfig(url), ...options });
    // A lost idle connection is replaced when one is needed.
    pool.on('error', () => undefined);
    return new PostgresPool(pool, max, waitTimeoutMs);
  }

  async connect(): Promise<KyselyClient> {
    return (await this.#connect()) as unknown as KyselyClient;
  }

  end(): Promise<void> {
    return this.#pool.end();
  }

  /** Runs statements on one connection. Returns a result for each, as the driver does: a list when there are several. */
  async query(text: string, values?: readonly unknown[]): Promise<QueryResult> {
    const client = await this.#connect();
    try {
      return await client.query(text, values);
    } finally {
      client.release();
    }
  }

  async #connect(): Promise<PooledClient> {
    await this.#acquire();
    const release = () => this.#connections.release();
    try {
      return new PooledClient(await this.#pool.connect(), release);
    } catch (error) {
      release();
      throw error;
    }
  }

  async #acquire(): Promise<void> {
    if (this.#connections.tryAcquire()) return;
    try {
      await this.#connections.acquire(1, AbortSignal.timeout(this.#waitTimeoutMs));
    } catch (cause) {
      throw new Error('timeout exceeded when waiting for a free connection', { cause });
    }
  }
}

class PooledClient {
  readonly #client: PoolClient;
  readonly #released: () => void;
  #loss: Error | null = null;

  constructor(client: PoolClient, released: () => void) {
    this.#client = client;
    this.#released = released;
    // The driver reports a loss twice: the server's message, and the end of the connection.
    client.on('error', this.#lose);
  }

  async query(text: string, values: readonly unknown[] = []): Promise<QueryResult> {
    // After a loss every further statement, such as a rollback, would only wait for its timeout.
    if (this.#loss !== null) throw this.#loss;
    try {
      return await this.#client.query({ text, values: [...values] });
    } catch (error) {
      if (isConnectionLoss(error)) this.#lose(error as Error);
      throw error;
    }
  }

  release(): void {
    this.#client.off('error', this.#lose);
    this.#client.release(this.#loss ?? undefined);
    this.#released();
  }

  readonly #lose = (error: Error): void => {
    this.#loss ??= error;
  };
}
