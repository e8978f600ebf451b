import assert from 'node:assert/strict';
import type { S3ClientConfig } from '@aws-sdk/client-s3';

/** Of the kinds of strategies that the SDK takes, the one that says of each failure whether and when to go on. */
type RetryStrategy = Extract<S3ClientConfig['retryStrategy'], { refreshRetryTokenForRetry: unknown }>;
type RetryToken = Awaited<ReturnType<RetryStrategy['acquireInitialRetryToken']>>;
type Failure = Parameters<RetryStrategy['refreshRetryTokenForRetry']>[1];

/**
 * How often a request is made at most: where a server has no time just now, which may be so for many seconds, and where
 * something else went wrong that may pass.
 */
const MAX_ATTEMPTS_WHILE_BUSY = 8;
const MAX_ATTEMPTS = 5;

/** The pause before a request is made again doubles up to this, and is at random between half of it and all. */
const FIRST_PAUSE_MS = 400;
const MAX_PAUSE_MS = 5_000;

/** So long a pause is made at most because the server asks for it. */
const MAX_PAUSE_ASKED_FOR_MS = 20_000;

/** What S3 answers while another request changes the same thing; AWS asks to try again. */
export const CONFLICT_CODE = 'OperationAborted';

export interface S3RetryBounds {
  readonly firstPauseMs: number;
}

/**
 * Repeats what 5xx, throttling, conflicts and broken connections ended, with growing pauses, and nothing else. Every
 * request has its own attempts: the SDK's own strategy has one account for all, and where a storm of refusals meets many
 * requests at once, most of them fail without having been repeated at all.
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

/** The pause before a request is made for the `made + 1`st time, in milliseconds. */
function pauseMs(made: number, { retryAfterHint }: Failure, firstPauseMs: number): number {
  assert(made > 0);
  const longest = Math.min(MAX_PAUSE_MS, firstPauseMs * 2 ** (made - 1));
  const askedFor = retryAfterHint === undefined ? 0 : retryAfterHint.getTime() - Date.now();
  return Math.max(longest * (0.5 + Math.random() / 2), Math.min(askedFor, MAX_PAUSE_ASKED_FOR_MS));
}
