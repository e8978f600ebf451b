import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type DialectAdapter,
  type Driver,
  type Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { SqliteConnection } from './sqlite-connection.ts';

/** Kysely over a connection that lives on a thread. Kysely itself lets one caller have it at a time. */
export class SqliteThreadDialect implements Dialect {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  createDriver(): Driver {
    return new SqliteThreadDriver(this.#connection);
  }

  createQueryCompiler(): SqliteQueryCompiler {
    return new SqliteQueryCompiler();
  }

  createAdapter(): DialectAdapter {
    return new SqliteAdapter();
  }

  createIntrospector(db: Kysely<unknown>): SqliteIntrospector {
    return new SqliteIntrospector(db);
  }
}

class SqliteThreadDriver implements Driver {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  init(): Promise<void> {
    return this.#connection.opened();
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    return new KyselyConnection(this.#connection);
  }

  async releaseConnection(): Promise<void> {
    // There is one connection, and it stays open.
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'));
  }

  destroy(): Promise<void> {
    return this.#connection.close();
  }
}

class KyselyConnection implements DatabaseConnection {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    const { rows, changes } = await this.#connection.query(sql, parameters);
    return { rows: rows as Row[], numAffectedRows: BigInt(changes) };
  }

  streamQuery(): never {
    throw new Error('The job store reads its rows whole.');
  }
}
