import { dirname } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import type { ActionFailure } from './sqlite-messages.ts';

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

/** An extended code: the lock was refused, as for a file that was opened for reading only because no more is allowed. */
const IO_ERROR_LOCK = 3850;

/** What a failure means: an AppError for what is wrong around the action, a plain Error for a wrong action. */
export function storeError(file: string, failure: ActionFailure): Error {
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
