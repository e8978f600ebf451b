const SECOND_MS = 1000;
const HOUR_MS = 3600 * SECOND_MS;

/** Callbacks that fail are tried again for so long after their job has ended. */
const GIVE_UP_AFTER_MS = 24 * HOUR_MS;

/** The pause after the first attempt that failed; it doubles up to the longest. */
const FIRST_PAUSE_MS = 5 * SECOND_MS;
const LONGEST_PAUSE_MS = HOUR_MS;

/** Pauses are shortened by up to this share, so that what failed together is not tried again together. */
const JITTER = 0.2;

/** When a callback is tried again, in milliseconds since 1970; null where it is given up. */
export function nextAttemptAt(
  { attempts, endedAtMs }: { readonly attempts: number; readonly endedAtMs: number },
  nowMs: number,
  random: number = Math.random(),
): number | null {
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 30), LONGEST_PAUSE_MS);
  const atMs = Math.round(nowMs + pauseMs * (1 - JITTER * random));
  return atMs > endedAtMs + GIVE_UP_AFTER_MS ? null : atMs;
}
