import { setTimeout as sleep } from 'node:timers/promises';

/** Shortens a pause by up to this share, so that what failed together is not repeated together. */
const DEFAULT_JITTER = 0.2;

/** Pauses that grow exponentially. */
export interface Backoff {
  /** The pause after the first failure. */
  readonly firstMs: number;
  /** The longest pause. */
  readonly maxMs: number;
  /** The factor by which each pause is longer than the one before; 2 by default. */
  readonly factor?: number;
  /** The share of a pause that chance may take away, from 0 to 1; 0.2 by default. */
  readonly jitter?: number;
}

export interface RetryOptions {
  readonly backoff: Backoff;
  /** Attempts in all, the first included. `Infinity` retries until the signal is aborted. */
  readonly maxAttempts: number;
  /** Returns false for permanent errors, which are not retried. `attempt` counts from 1. */
  readonly isTransient: (error: unknown, attempt: number) => boolean;
  readonly signal?: AbortSignal;
}

/** Returns the pause after the `failures`th failure in a row (1, 2, …), in milliseconds. `random` is from 0 to 1. */
export function backoffMs(
  failures: number,
  { firstMs, maxMs, factor = 2, jitter = DEFAULT_JITTER }: Backoff,
  random: number = Math.random(),
): number {
  return Math.min(firstMs * factor ** (failures - 1), maxMs) * (1 - jitter * random);
}

/**
 * Runs a task again after each transient error, with exponential back-off, up to a limit. Throws the last error of the
 * task, or the signal's reason when it is aborted; an attempt that runs then is not interrupted by this function.
 *
 * Not `p-retry`: it hides errors that are not instances of Error, treats some TypeErrors as permanent, and its back-off
 * cannot be used by itself, as the S3 SDK and retries that are recorded in the job store need.
 */
export async function retry<T>(
  task: (attempt: number) => Promise<T>,
  { backoff, maxAttempts, isTransient, signal }: RetryOptions,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await task(attempt);
    } catch (error) {
      signal?.throwIfAborted();
      if (attempt >= maxAttempts || !isTransient(error, attempt)) throw error;
    }
    await pause(backoffMs(attempt, backoff), signal);
  }
}

/** Waits for `ms` milliseconds. Throws the signal's reason as soon as it is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  // The timer's own AbortError would hide the reason.
  await sleep(ms, undefined, { ...(signal && { signal }) }).catch(() => signal?.throwIfAborted());
}
