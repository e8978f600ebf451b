import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';
import { shownAddress } from './http-address.ts';
import { isExpiryOf } from './presigned-expiry.ts';

/** What the code of a lost or refused connection means, as the end of "the server could not be reached: …". */
const CONNECTION_PROBLEMS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the server closed the connection',
  EPIPE: 'the server closed the connection',
  ETIMEDOUT: 'it does not answer',
  EHOSTUNREACH: 'no way leads to the host',
  ENETUNREACH: 'no way leads to its network',
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer',
  UND_ERR_SOCKET: 'the server closed the connection',
  EAI_AGAIN: 'the name of the host could not be resolved at the moment',
};

const TIMEOUT_CODES = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'SILENT_SERVER']);

/** Codes of OpenSSL and Node for certificates that are not accepted. */
const CERTIFICATE_CODE = /CERT|^ERR_TLS|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)|HOSTNAME_MISMATCH/;

/** What undici and the system throw about a request, in the words of the catalogue; anything else unchanged. */
export function requestError(cause: unknown, url: URL, idleTimeoutMs: number): unknown {
  if (cause instanceof AppError) return cause;
  const code = codeOf(cause);
  if (code === undefined) return cause;
  const address = shownAddress(url);
  if (code === 'ENOTFOUND') return new AppError('HTTP_HOST_UNKNOWN', { host: url.hostname }, { cause });
  if (TIMEOUT_CODES.has(code)) return new AppError('HTTP_TIMED_OUT', { address, timeoutMs: idleTimeoutMs }, { cause });
  const connection = CONNECTION_PROBLEMS[code];
  if (connection !== undefined) return new AppError('HTTP_UNREACHABLE', { address, problem: connection }, { cause });
  if (/^(?:EPROTO|ERR_SSL)/.test(code)) {
    return new AppError(
      'HTTP_ANSWER_INVALID',
      { address, problem: 'it speaks no TLS that is understood here' },
      { cause },
    );
  }
  if (CERTIFICATE_CODE.test(code)) return new AppError('HTTP_CERTIFICATE_REFUSED', { address, code }, { cause });
  if (isSystemError(cause)) return new AppError('HTTP_UNREACHABLE', { address, problem: problemOf(cause) }, { cause });
  return new AppError('HTTP_ANSWER_INVALID', { address, problem: `it is no HTTP (${code})` }, { cause });
}

/**
 * Whether the same request may fare better in a moment: the connection was lost, or there was none. `failures` counts
 * those before this one: a server that falls silent is waited for twice, and no longer.
 */
export function mayPass(error: unknown, failures: number, maxFailures: number): boolean {
  const code = codeOf(error);
  if (code === undefined) return false;
  if (TIMEOUT_CODES.has(code)) return failures < 1;
  return CONNECTION_PROBLEMS[code] !== undefined && failures < maxFailures;
}

/** The code of an error, or of the first of several that were tried (addresses of one host). */
function codeOf(error: unknown): string | undefined {
  if (error instanceof AppError) return undefined;
  if (error instanceof Error && error.name === 'HTTPParserError') return systemErrorCode(error) ?? 'HPE';
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return systemErrorCode(error);
}

/** What an answer that is neither success nor redirect means. `body` is its beginning. */
export function statusError(status: number, url: URL, body: string): AppError {
  const address = shownAddress(url);
  if (status === 404 || status === 410) return new AppError('HTTP_NOT_FOUND', { address, status });
  if ([400, 401, 403].includes(status)) {
    if (isExpiryOf(url, body)) return new AppError('HTTP_LINK_EXPIRED', { address, status });
    if (status !== 400) return new AppError('HTTP_FORBIDDEN', { address, status });
  }
  if (isBusy(status)) return new AppError('HTTP_BUSY', { address, status });
  return new AppError('HTTP_REFUSED', { address, status });
}

/** Whether a status says that the same request may be answered another time. */
export function isBusy(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}
