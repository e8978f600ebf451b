/** What the thread of the database is started with. */
export interface SqliteThreadData {
  /** The database file; its folder exists. */
  readonly file: string;
}

/** What the service says to the thread of the database. Queries are answered in order. */
export type ToSqliteThread =
  | { readonly type: 'query'; readonly id: number; readonly sql: string; readonly parameters: readonly unknown[] }
  | { readonly type: 'close' };

/** Why SQLite refused something. */
export interface SqliteFailure {
  /** The extended result code (https://sqlite.org/rescode.html), 0 where the error is not SQLite's. */
  readonly code: number;
  readonly message: string;
}

/** What the thread of the database says to the service. The first message is `opened` or `refused`. */
export type FromSqliteThread =
  | { readonly type: 'opened' }
  | { readonly type: 'refused'; readonly failure: SqliteFailure }
  /** `changes`: rows inserted, updated or deleted, or the number of `rows` where there are any. */
  | { readonly type: 'answer'; readonly id: number; readonly rows: readonly unknown[]; readonly changes: number }
  | { readonly type: 'failed'; readonly id: number; readonly failure: SqliteFailure };
