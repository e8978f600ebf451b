import { AppError } from '#errors/app-error.ts';

/** Classes and codes of SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const LOGIN_REFUSED = /^28/;
const DATABASE_ABSENT = '3D000';
const NOT_PERMITTED = '42501';
const READ_ONLY = '25006';
const FULL = /^53(100|200)/;
/** The server ends, starts, has no room for connections, or let go of this one. */
const OUT_OF_REACH = /^(08...|57P0[1-5]|53300|25P0[34])$/;
/** Another transaction was in the way; the same one may go through the next time. */
const IN_THE_WAY = /^40(001|P01)$/;

/** How Node and its PostgreSQL driver report connections that are lost or not to be had. */
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
  /connection terminated|timeout exceeded|read timeout|client was closed|not queryable|connection error|connection ended/i;

const SILENCE = /timeout|ETIMEDOUT/i;

/** What a failure of PostgreSQL means: an AppError for what is wrong around the action, else the error itself. */
export function databaseError(place: string, error: unknown): unknown {
  if (error instanceof AppError || !(error instanceof Error)) return error;
  const code = codeOf(error);
  const problem = problemOf(error);
  if (LOGIN_REFUSED.test(code)) return new AppError('DATABASE_REFUSES_LOGIN', { place, problem }, { cause: error });
  if (code === DATABASE_ABSENT) return new AppError('DATABASE_MISSING', { place }, { cause: error });
  if (code === NOT_PERMITTED) return new AppError('DATABASE_FORBIDS', { place, problem }, { cause: error });
  if (code === READ_ONLY) return new AppError('DATABASE_READ_ONLY', { place }, { cause: error });
  if (FULL.test(code)) return new AppError('DATABASE_FULL', { place, problem }, { cause: error });
  if (isConnectionLoss(error)) return new AppError('DATABASE_UNREACHABLE', { place, problem }, { cause: error });
  return error;
}

/** Whether the connection that an error came from is of no use any more. */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  return OUT_OF_REACH.test(code) || CONNECTION_CODES.has(code) || CONNECTION_MESSAGES.test(error.message);
}

/** Whether a connection was cut, or not to be had, within moments: what only stayed silent has cost its bound already. */
export function isConnectionCut(error: unknown): boolean {
  return isConnectionLoss(error) && !SILENCE.test((error as Error).message);
}

/** Whether a transaction failed only because another one was in the way. */
export function isInTheWay(error: unknown): boolean {
  return error instanceof Error && IN_THE_WAY.test(codeOf(error));
}

function codeOf(error: Error): string {
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const { code } = first as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

/** The driver's messages name users, hosts and tables, never a password. */
function problemOf(error: Error): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error ? first.message : String(first);
}
