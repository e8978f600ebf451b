import { AppError } from '#errors/app-error.ts';

/** Classes and codes of SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const LOGIN_REFUSED = /^28/;
const DATABASE_ABSENT = '3D000';
const NOT_PERMITTED = '42501';
const READ_ONLY = '25006';
const FULL = /^53(100|200)/;
/** The server stops, starts, accepts no more connections, or closed this one. */
const UNREACHABLE = /^(08...|57P0[1-5]|53300|25P0[34])$/;
/** A conflict with another transaction; a retry may succeed. */
const CONFLICT = /^40(001|P01)$/;

/** The server cancelled a statement that took or waited too long (`statement_timeout`, `lock_timeout`), or an operator did. */
const CANCELLED = /^(57014|55P03)$/;

/** The codes of OpenSSL and Node for certificates that they refuse. */
const CERTIFICATE_REFUSED = /CERT|^UNABLE_TO_|^INVALID_(CA|PURPOSE)$|^HOSTNAME_MISMATCH$/;

/** The codes and messages of Node and its PostgreSQL driver for connections that are lost or refused. */
const CONNECTION_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
]);
const CONNECTION_MESSAGES =
  /connection terminated|timeout expired|timeout exceeded|read timeout|client was closed|not queryable|connection error|connection ended|does not support SSL/i;

const TIMEOUT = /timeout|ETIMEDOUT/i;

/** Converts an error to an AppError when the database cannot be used; returns any other error as it is. */
export function databaseError(address: string, error: unknown): unknown {
  if (error instanceof AppError || !(error instanceof Error)) return error;
  const code = codeOf(error);
  const problem = problemOf(error);
  // Of all files, the driver opens those of certificates only.
  if (CERTIFICATE_REFUSED.test(code) || (error as NodeJS.ErrnoException).syscall === 'open') {
    return new AppError('DATABASE_CERTIFICATE_UNTRUSTED', { address, problem }, { cause: error });
  }
  if (LOGIN_REFUSED.test(code)) return new AppError('DATABASE_REFUSES_LOGIN', { address, problem }, { cause: error });
  if (code === DATABASE_ABSENT) return new AppError('DATABASE_MISSING', { address }, { cause: error });
  if (code === NOT_PERMITTED) return new AppError('DATABASE_FORBIDS', { address, problem }, { cause: error });
  if (code === READ_ONLY) return new AppError('DATABASE_READ_ONLY', { address }, { cause: error });
  if (FULL.test(code)) return new AppError('DATABASE_FULL', { address, problem }, { cause: error });
  if (CANCELLED.test(code) || isConflict(error)) {
    return new AppError('DATABASE_TOO_SLOW', { address, problem }, { cause: error });
  }
  if (isConnectionLoss(error)) return new AppError('DATABASE_UNREACHABLE', { address, problem }, { cause: error });
  return error;
}

/** Returns true when the connection that the error came from must not be used again. */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  return UNREACHABLE.test(code) || CONNECTION_CODES.has(code) || CONNECTION_MESSAGES.test(error.message);
}

/** Returns true when a connection was cut or refused at once. A timeout is excluded: it has cost its time already. */
export function isConnectionCut(error: unknown): boolean {
  return isConnectionLoss(error) && !TIMEOUT.test((error as Error).message);
}

/** Returns true when a transaction failed only because of a conflict with another one. */
export function isConflict(error: unknown): boolean {
  return error instanceof Error && CONFLICT.test(codeOf(error));
}

function codeOf(error: Error): string {
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const { code } = first as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

/** Returns the driver's message. It names users, hosts and tables, never a password. */
function problemOf(error: Error): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error ? first.message : String(first);
}
