let lingeringCalls = 0;

/**
 * Waits for a call into native code, but no longer than until the signal. Native calls cannot be cancelled: one that
 * was given up runs on in the background, and until it ends the process counts as tainted.
 */
export async function awaitNativeCall<T>(call: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => {
    lingeringCalls += 1;
    call.catch(() => {}).finally(() => void (lingeringCalls -= 1));
    aborted.reject(signal.reason);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([call, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/**
 * Whether a native call that nobody waits for any more still runs. A worker process in this state should end after it
 * has reported, instead of taking another input: the call holds memory and a thread.
 */
export function hasLingeringNativeCall(): boolean {
  return lingeringCalls > 0;
}
