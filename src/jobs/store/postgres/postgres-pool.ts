import type { PostgresPool } from 'kysely';
import type { ClientBase, ClientConfig, Pool, PoolClient, QueryResult } from 'pg';
import { preparedName } from '../prepared.ts';
import { isConnectionLoss } from './database-error.ts';

/** How long a connection may take to come about, and a statement to be answered: a partition looks like silence. */
const CONNECT_BOUND_MS = 5_000;
const STATEMENT_BOUND_MS = 15_000;

/** Type numbers of PostgreSQL whose values come as text, because they may exceed what JavaScript holds exactly. */
const INT8 = 20;
const NUMERIC = 1700;

/**
 * Every statement goes by an index, whatever the tables were like when it was planned: a queue that was empty then may hold
 * a hundred thousand inputs a moment later, before anybody has counted them.
 */
const PLANNING = 'set enable_seqscan = off; set enable_bitmapscan = off; set jit = off';

/** A lost client's transaction must not hold its locks for longer than the client believes in it. */
const PATIENCE = `set idle_in_transaction_session_timeout = ${STATEMENT_BOUND_MS}`;

/** The driver's settings for every connection of a node. */
export function clientConfig(url: string): ClientConfig {
  return {
    connectionString: url,
    application_name: 'attestream',
    connectionTimeoutMillis: CONNECT_BOUND_MS,
    query_timeout: STATEMENT_BOUND_MS,
    keepAlive: true,
  };
}

/** Opens the connections of a node, of which at most so many are open at once. None is made yet. */
export async function openPool(url: string, max: number): Promise<SafePool> {
  const { default: pg } = await import('pg');
  const types = {
    getTypeParser: (id: number, format?: 'text' | 'binary') =>
      // Counts and sizes: all of them are below 2^53.
      id === INT8 || id === NUMERIC ? Number : pg.types.getTypeParser(id, format as 'text'),
  };
  // Not with the first message of a connection, for poolers refuse settings there that they do not know.
  const onConnect = async (client: ClientBase) => void (await client.query(`${PLANNING}; ${PATIENCE}`));
  const pool = new pg.Pool({ ...clientConfig(url), types: types as never, max, idleTimeoutMillis: 30_000, onConnect });
  // An idle connection that is lost is made again when it is needed.
  pool.on('error', () => undefined);
  return new SafePool(pool, max);
}

/**
 * Connections, of which one that was lost or stopped answering is never used again. Whoever finds all in use waits for
 * as long as it takes: only the making of a connection is bounded.
 */
export class SafePool {
  readonly #pool: Pool;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(pool: Pool, max: number) {
    this.#pool = pool;
    this.#free = max;
  }

  async connect(): Promise<SafeClient> {
    await this.#takeTurn();
    const giveBack = () => this.#passTurn();
    try {
      return new SafeClient(await this.#pool.connect(), giveBack);
    } catch (error) {
      giveBack();
      throw error;
    }
  }

  /** The pool as Kysely asks for it; what it leaves out, cursors and the cancelling of queries, the store does not use. */
  forKysely(): PostgresPool {
    return {
      options: {},
      connect: async () => (await this.connect()) as unknown as Awaited<ReturnType<PostgresPool['connect']>>,
      end: () => this.end(),
    };
  }

  async query(text: string, values?: readonly unknown[]): Promise<QueryResult> {
    const client = await this.connect();
    try {
      return await client.query(text, values);
    } finally {
      client.release();
    }
  }

  end(): Promise<void> {
    return this.#pool.end();
  }

  async #takeTurn(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #passTurn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}

class SafeClient {
  readonly #client: PoolClient;
  readonly #released: () => void;
  #loss: Error | null = null;

  constructor(client: PoolClient, released: () => void) {
    this.#client = client;
    this.#released = released;
    client.once('error', this.#lose);
  }

  async query(text: string, values?: readonly unknown[]): Promise<QueryResult> {
    // After a loss every further statement, such as a rollback, would only wait for its bound.
    if (this.#loss !== null) throw this.#loss;
    try {
      const name = preparedName(text);
      return await this.#client.query({ text, values: [...(values ?? [])], ...(name !== undefined && { name }) });
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
