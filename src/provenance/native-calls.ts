import { untilAborted } from './until-aborted.ts';

let lingeringCalls = 0;

/**
 * Makes a call into native code and waits for it, but no longer than until the signal. Such calls cannot be cancelled:
 * one that was given up runs on in the background, and until it ends the process counts as tainted.
 */
export async function awaitNativeCall<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let settled = false;
  const result = call().finally(() => {
    settled = true;
  });
  try {
    return await untilAborted(result, signal);
  } finally {
    if (!settled) trackLingering(result);
  }
}

/**
 * Whether a native call that nobody waits for any more still runs. A worker process in this state should end after it
 * has reported, instead of taking another input: the call holds memory and a thread.
 */
export function hasLingeringNativeCall(): boolean {
  return lingeringCalls > 0;
}

function trackLingering(call: Promise<unknown>): void {
  lingeringCalls += 1;
  const end = (): void => {
    lingeringCalls -= 1;
  };
  call.then(end, end);
}
