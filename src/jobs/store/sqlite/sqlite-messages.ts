import type { AppErrorData } from '#errors/app-error.ts';
import type { ActionName } from '../actions.ts';

/** What the thread of the database is started with. */
export interface SqliteThreadData {
  /** The database file; its folder exists. */
  readonly file: string;
}

/** An action that the thread is to run. */
export interface ActionOrder {
  readonly id: number;
  readonly name: ActionName;
  /** What the action is given beside the database. */
  readonly given: readonly unknown[];
}

/** What the service says to the thread of the database. What was asked for at once comes in one message. */
export type ToSqliteThread =
  | { readonly type: 'run'; readonly orders: readonly ActionOrder[] }
  | { readonly type: 'close' };

/** Why an action failed: an error of the catalogue, or what SQLite refused. */
export type ActionFailure =
  | { readonly error: AppErrorData }
  /** The extended result code (https://sqlite.org/rescode.html), 0 where the error is not SQLite's. */
  | { readonly code: number; readonly message: string };

export interface ActionAnswer {
  readonly id: number;
  readonly value?: unknown;
  readonly failure?: ActionFailure;
}

/** What the thread of the database says to the service. The first message is `opened` or `refused`. */
export type FromSqliteThread =
  | { readonly type: 'opened' }
  | { readonly type: 'refused'; readonly failure: ActionFailure }
  | { readonly type: 'answers'; readonly answers: readonly ActionAnswer[] };
