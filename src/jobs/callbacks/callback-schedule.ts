const HOUR_MS = 3600 * 1000;

/** Callbacks that fail are tried again for so long after their job has ended. */
const GIVE_UP_AFTER_MS = 24 * HOUR_MS;

/** The pauses between attempts double up to the longest. */
const LONGEST_PAUSE_MS = HOUR_MS;

/** Pauses are shortened by up to this share, so that what failed together is not tried again together. */
const JITTER = 0.2;

/** A callback that failed. */
export interface FailedCallback {
  /** So far. */
  readonly attempts: number;
  /** When its job ended, in milliseconds since 1970. */
  readonly endedAtMs: number;
  /** The pause after the first attempt. */
  readonly firstPauseMs: number;
}

/** When a callback is tried again, in milliseconds since 1970; null where it is given up. */
export function nextAttemptAt(
  { attempts, endedAtMs, firstPauseMs }: FailedCallback,
  nowMs: number,
  random: number = Math.random(),
): number | null {
  const pauseMs = Math.min(firstPauseMs * 2 ** Math.min(attempts - 1, 30), LONGEST_PAUSE_MS);
  const atMs = Math.round(nowMs + pauseMs * (1 - JITTER * random));
  return atMs > endedAtMs + GIVE_UP_AFTER_MS ? null : atMs;
}
