import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { backoffMs } from '#concurrency/retry.ts';

/** The SDK's kind of strategy that decides for each failure whether and when to retry. */
type RetryStrategy = Extract<S3ClientConfig['retryStrategy'], { refreshRetryTokenForRetry: unknown }>;
type RetryToken = Awaited<ReturnType<RetryStrategy['acquireInitialRetryToken']>>;
type Failure = Parameters<RetryStrategy['refreshRetryTokenForRetry']>[1];

/** Attempts at a request to a busy server, which may be busy for many seconds, and after any other transient error. */
const MAX_ATTEMPTS_WHILE_BUSY = 8;
const MAX_ATTEMPTS = 5;

/** The pause before a retry doubles up to this, with a jitter of a half. */
const FIRST_PAUSE_MS = 400;
const MAX_PAUSE_MS = 5_000;

/** The longest pause that a server's `Retry-After` may cause. */
const MAX_PAUSE_ASKED_FOR_MS = 20_000;

/** The error code of S3 for a concurrent change of the same resource; AWS asks to retry. */
export const CONFLICT_CODE = 'OperationAborted';

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

/** `count` is how often a request was repeated; the SDK waits for the delay before it does so again. */
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
