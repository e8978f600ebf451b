import { dirname } from 'node:path';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import type { StoreMethod } from '../store-methods.ts';

/** A call of a method of the store. */
export interface StoreCall {
  /** Identifies the answer. */
  readonly id: number;
  readonly method: StoreMethod;
  readonly args: readonly unknown[];
}

/** Messages from the service to the thread. Calls made in one turn of the event loop share a message. */
export type ToSqliteThread =
  | { readonly type: 'run'; readonly calls: readonly StoreCall[] }
  | { readonly type: 'close' };

/** The failure of a call: an error of the catalogue, or a refusal by SQLite. */
type CallFailure =
  | { readonly error: AppErrorData }
  /** The extended result code (https://sqlite.org/rescode.html), 0 for an error of another origin. */
  | { readonly code: number; readonly message: string };

export interface CallAnswer {
  readonly id: number;
  readonly value?: unknown;
  readonly failure?: CallFailure;
}

/** Messages from the thread to the service. The first one is `opened` or `refused`. */
export type FromSqliteThread =
  | { readonly type: 'opened'; readonly methods: readonly StoreMethod[] }
  | { readonly type: 'refused'; readonly failure: CallFailure }
  | { readonly type: 'answers'; readonly answers: readonly CallAnswer[] };

/** Primary result codes of SQLite (https://sqlite.org/rescode.html): the low byte of an extended code. */
const PRIMARY = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
};

/** An extended code: the lock was refused, for example because the file may only be read. */
const IO_ERROR_LOCK = 3850;

/** Converts a failure to an AppError when the database cannot be used, or to an Error when the statement is wrong. */
export function storeError(file: string, failure: CallFailure): Error {
  if ('error' in failure) return AppError.fromData(failure.error);
  const { code, message } = failure;
  const cause = new Error(`SQLite ${code}: ${message}`);
  if (code === IO_ERROR_LOCK) {
    const problem = 'it cannot be locked for writing; it may only be read, or its file system has no locks';
    return new AppError('STORE_UNREADABLE', { file, problem }, { cause });
  }
  switch (code & 0xff) {
    case PRIMARY.busy:
    case PRIMARY.locked:
      return new AppError('STORE_IN_USE', { folder: dirname(file), pid: null }, { cause });
    case PRIMARY.readOnly:
      return new AppError('STORE_READ_ONLY', { file }, { cause });
    case PRIMARY.full:
      return new AppError('STORE_DISK_FULL', { file }, { cause });
    case PRIMARY.corrupt:
    case PRIMARY.notADatabase:
      return new AppError('STORE_CORRUPT', { file, problem: message }, { cause });
    case PRIMARY.cannotOpen:
      return new AppError('STORE_UNREADABLE', { file, problem: 'SQLite cannot open it' }, { cause });
    case PRIMARY.ioError:
      return new AppError('STORE_IO_FAILED', { file, problem: message }, { cause });
    default:
      return cause;
  }
}

/** Converts an error of the thread to data. */
export function failureOf(error: unknown): CallFailure {
  if (error instanceof AppError) return { error: error.toData() };
  const { errcode, message } = error as { errcode?: number; message?: string };
  return { code: errcode ?? 0, message: message ?? String(error) };
}
