import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { backoffMs } from '#concurrency/retry.ts';
import { AppError } from '#errors/app-error.ts';
import type { S3Action } from '#errors/entry.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';
import { type S3Address, s3UrlOf } from '../s3-address.ts';

/** An error of the AWS SDK: S3's own code as its name, and the status and headers of the response. */
interface ServiceError extends Error {
  readonly $metadata: { readonly httpStatusCode?: number };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
  readonly StorageClass?: string;
  readonly Code?: string;
}

/** S3's codes for credentials that are wrong, or no longer right. */
const CREDENTIAL_PROBLEMS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    InvalidAccessKeyId: 'it does not know the access key',
    SignatureDoesNotMatch: 'the secret key does not fit the access key',
    ExpiredToken: 'the session has expired',
    ExpiredTokenException: 'the session has expired',
    InvalidToken: 'the session token is wrong',
    TokenRefreshRequired: 'the session has expired',
    RequestTimeTooSkewed: "the service's clock differs too much",
    CredentialsProviderError: 'the service has none, or cannot load them',
    TokenProviderError: 'the service has none, or cannot load them',
  }),
);

/**
 * Translates an error of the SDK into an AppError about an address. Returns errors that concern neither S3, its credentials
 * nor the network unchanged. The SDK has retried transient errors before.
 */
export function s3Error(cause: unknown, address: S3Address, action: S3Action): unknown {
  if (cause instanceof AppError || !(cause instanceof Error) || cause.name === 'AbortError') return cause;
  const problem = CREDENTIAL_PROBLEMS.get(codeOf(cause));
  if (problem !== undefined) return new AppError('S3_CREDENTIALS_REFUSED', { problem }, { cause });
  if (isServiceError(cause)) return answeredError(cause, address, action);
  const unreachable = unreachableProblem(cause);
  if (unreachable === null) return cause;
  return new AppError('S3_UNREACHABLE', { address: s3UrlOf(address), problem: unreachable }, { cause });
}

/** Returns S3's name for what is wrong, such as `NoSuchKey`. */
function codeOf(error: Error): string {
  return (error as Partial<ServiceError>).Code ?? error.name;
}

function isServiceError(error: Error): error is ServiceError {
  const { $metadata } = error as Partial<ServiceError>;
  return $metadata?.httpStatusCode !== undefined;
}

function answeredError(cause: ServiceError, address: S3Address, action: S3Action): AppError {
  const status = cause.$metadata.httpStatusCode ?? 0;
  const { bucket } = address;
  const code = codeOf(cause);
  const url = s3UrlOf(address);
  if (code === 'NoSuchBucket') return new AppError('S3_BUCKET_MISSING', { bucket }, { cause });
  if (code === 'InvalidObjectState') {
    return new AppError('S3_OBJECT_ARCHIVED', { address: url, storageClass: cause.StorageClass ?? null }, { cause });
  }
  if (isRegionProblem(status, code)) {
    const region = cause.$response?.headers?.['x-amz-bucket-region'] ?? null;
    return new AppError('S3_REGION_WRONG', { bucket, region }, { cause });
  }
  if (status === 404) return new AppError('S3_OBJECT_MISSING', { address: url }, { cause });
  if (status === 403 || status === 401) return new AppError('S3_ACCESS_DENIED', { address: url, action }, { cause });
  if (code === CONFLICT_CODE) return new AppError('S3_CONFLICT', { address: url }, { cause });
  const isBusy = status >= 500 || status === 429;
  const reason = isBusy ? 'S3_BUSY' : 'S3_REQUEST_REFUSED';
  return new AppError(reason, { address: url, status, code }, { cause });
}

function isRegionProblem(status: number, code: string): boolean {
  return (
    [301, 307].includes(status) || ['AuthorizationHeaderMalformed', 'IllegalLocationConstraintException'].includes(code)
  );
}

/** Describes the network error that kept a request from being answered; null for any other error. */
function unreachableProblem(error: Error): string | null {
  const code = systemErrorCode(error) ?? '';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'its host name is not known';
  if (code === 'ECONNREFUSED') return 'the connection was refused';
  if (['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'].includes(code)) return 'the connection broke off';
  if (error.name === 'TimeoutError' || code === 'ETIMEDOUT') return 'it did not answer in time';
  if (isCertificateProblem(code)) return `its certificate is not trusted (${code})`;
  if (isSystemError(error)) return problemOf(error);
  // The SDK notes on every error that ended a request how often it was made.
  const wasRequested = '$metadata' in error && !(error instanceof TypeError);
  return wasRequested ? `the connection failed (${code === '' ? error.name : code})` : null;
}

function isCertificateProblem(code: string): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO_|^INVALID_(CA|PURPOSE)$|HOSTNAME_MISMATCH|^ERR_(SSL|TLS)_|^EPROTO$/.test(code);
}

/** The SDK's kind of strategy that decides for each failure whether and when to retry. */
type RetryStrategy = Extract<S3ClientConfig['retryStrategy'], { refreshRetryTokenForRetry: unknown }>;
type RetryToken = Awaited<ReturnType<RetryStrategy['acquireInitialRetryToken']>>;
type Failure = Parameters<RetryStrategy['refreshRetryTokenForRetry']>[1];

/** Attempts at a request to a busy server, which may be busy for many seconds, and after any other transient error. */
const MAX_ATTEMPTS_WHILE_BUSY = 7;
const MAX_ATTEMPTS = 5;

/** The pause before a retry doubles up to this, with a jitter of a half. */
const FIRST_PAUSE_MS = 400;
const MAX_PAUSE_MS = 5_000;

/** The longest pause that a server's `Retry-After` may cause. */
const MAX_PAUSE_ASKED_FOR_MS = 20_000;

/** The error code of S3 for a concurrent change of the same resource; AWS asks to retry. */
const CONFLICT_CODE = 'OperationAborted';

export interface S3RetryBounds {
  readonly firstPauseMs: number;
}

/**
 * Retries 5xx, throttling, conflicts and lost connections with exponential back-off, and nothing else. Every request has its
 * own attempts: the SDK's own strategy shares one budget among all, and when a storm of refusals meets many requests at
 * once, most of them fail without a retry.
 */
export function s3Retry({ firstPauseMs = FIRST_PAUSE_MS }: Partial<S3RetryBounds> = {}): RetryStrategy {
  return {
    acquireInitialRetryToken: async () => tokenOf(0, 0),
    async refreshRetryTokenForRetry(token, failure) {
      const made = token.getRetryCount() + 1;
      if (made >= attemptsFor(failure)) throw new Error('the request is not made again');
      return tokenOf(made, pauseMs(made, failure, firstPauseMs));
    },
    recordSuccess: () => undefined,
  };
}

/**
 * Makes the token of a retry. `count` is how often the request was repeated; the SDK waits for the delay before
 * it repeats it.
 */
function tokenOf(count: number, delayMs: number): RetryToken {
  return { getRetryCount: () => count, getRetryDelay: () => delayMs };
}

function attemptsFor(failure: Failure): number {
  if (isBusy(failure)) return MAX_ATTEMPTS_WHILE_BUSY;
  return failure.errorType === 'CLIENT_ERROR' ? 1 : MAX_ATTEMPTS;
}

function isBusy({ error, errorType }: Failure): boolean {
  const { name, $metadata } = (error ?? {}) as { name?: string; $metadata?: { httpStatusCode?: number } };
  return errorType === 'THROTTLING' || $metadata?.httpStatusCode === 503 || name === CONFLICT_CODE;
}

/** Returns the pause after the attempt number `made`, in milliseconds. */
function pauseMs(made: number, { retryAfterHint }: Failure, firstPauseMs: number): number {
  const ownMs = backoffMs(made, { firstMs: firstPauseMs, maxMs: MAX_PAUSE_MS, jitter: 0.5 });
  const askedForMs = retryAfterHint === undefined ? 0 : retryAfterHint.getTime() - Date.now();
  return Math.max(ownMs, Math.min(askedForMs, MAX_PAUSE_ASKED_FOR_MS));
}
