import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';

/** Descriptions of the codes of lost and refused connections, as the end of "the server could not be reached: …". */
const CONNECTION_PROBLEMS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: 'nothing listens there',
    ECONNRESET: 'the server closed the connection',
    EPIPE: 'the server closed the connection',
    ETIMEDOUT: 'it does not answer',
    EHOSTUNREACH: 'no way leads to the host',
    ENETUNREACH: 'no way leads to its network',
    UND_ERR_CONNECT_TIMEOUT: 'it does not answer',
    UND_ERR_SOCKET: 'the server closed the connection',
    EAI_AGAIN: 'the name of the host could not be resolved at the moment',
  }),
);

/** Reasons for which a server is taken not to have what may be missing: some refuse what they do not have, in one way or another. */
export const ABSENT_REASONS: ReadonlySet<string> = new Set(['HTTP_NOT_FOUND', 'HTTP_FORBIDDEN', 'HTTP_REFUSED']);

const TIMEOUT_CODES = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'SILENT_SERVER']);

/** Codes of OpenSSL and Node for certificates that are not accepted. */
const CERTIFICATE_CODE = /CERT|^ERR_TLS|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)|HOSTNAME_MISMATCH/;

/** Translates errors of undici and the system about a request into AppErrors. Returns any other error unchanged. */
export function requestError(cause: unknown, url: URL, idleTimeoutMs: number): unknown {
  if (cause instanceof AppError) return cause;
  const code = codeOf(cause);
  if (code === undefined) return cause;
  const address = shownAddress(url);
  if (code === 'ENOTFOUND') return new AppError('HTTP_HOST_UNKNOWN', { host: url.hostname }, { cause });
  if (TIMEOUT_CODES.has(code)) return new AppError('HTTP_TIMED_OUT', { address, timeoutMs: idleTimeoutMs }, { cause });
  const connection = CONNECTION_PROBLEMS.get(code);
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
 * Tells whether an error is transient: the connection was lost, or there was none. A server that is silent until the
 * timeout is asked a second time, and no more. `failures` counts the transient errors before this one.
 */
export function isTransient(error: unknown, failures: number, maxFailures: number): boolean {
  const code = codeOf(error);
  if (code === undefined) return false;
  if (TIMEOUT_CODES.has(code)) return failures < 1;
  return CONNECTION_PROBLEMS.get(code) !== undefined && failures < maxFailures;
}

/** Returns the code of an error, or of the first of several that were tried (addresses of one host). */
function codeOf(error: unknown): string | undefined {
  if (error instanceof AppError) return undefined;
  if (error instanceof Error && error.name === 'HTTPParserError') return systemErrorCode(error) ?? 'HPE';
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return systemErrorCode(error);
}

/** Returns the error for a response that is neither success nor redirect. `body` is the start of its body. */
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

/** Tells whether a status is transient. */
export function isBusy(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

/** An address is shown up to this length. */
const MAX_SHOWN_LENGTH = 400;

/** Returns an address for messages and logs: without the query, which may hold a secret, and without user names. */
export function shownAddress(url: URL): string {
  const shown = `${url.protocol}//${url.host}${url.pathname}`;
  return shown.length <= MAX_SHOWN_LENGTH ? shown : `${shown.slice(0, MAX_SHOWN_LENGTH)}…`;
}

/** Phrases of S3, Google and Azure for an expired presigned URL. */
const EXPIRY_WORDS = /request has expired|ExpiredToken|not valid in the specified time frame/i;

/**
 * Tells whether a refusal means that a presigned URL has expired: by the server's message or, since some send none, by the
 * time that stands in the URL itself: AWS and Google (`X-Amz-Date` and `X-Amz-Expires`, `X-Goog-…`), CloudFront and
 * older S3 (`Expires`, seconds since 1970), Azure (`se`).
 */
export function isExpiryOf(url: URL, answer: string, nowMs = Date.now()): boolean {
  if (EXPIRY_WORDS.test(answer)) return true;
  const ends = [
    relativeEnd(url, 'X-Amz'),
    relativeEnd(url, 'X-Goog'),
    Number(parameter(url, 'Expires') ?? Number.NaN) * 1000,
    Date.parse(parameter(url, 'se') ?? ''),
  ];
  return ends.some((endMs) => endMs < nowMs);
}

/** Returns the time at which a presigned URL expires; NaN where the URL has no such time. */
function relativeEnd(url: URL, prefix: string): number {
  const date = parameter(url, `${prefix}-Date`)?.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5');
  return Date.parse(date ?? '') + Number(parameter(url, `${prefix}-Expires`) ?? Number.NaN) * 1000;
}

function parameter(url: URL, name: string): string | undefined {
  const wanted = name.toLowerCase();
  return [...url.searchParams].find(([key]) => key.toLowerCase() === wanted)?.[1];
}
