/** Waits for a promise. Throws the signal's reason as soon as it is aborted; the promise's later result is ignored. */
export async function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Waits for a promise for a time, in milliseconds; then returns `otherwise`, and ignores the promise's later result. */
export async function raceTimeout<T>(promise: Promise<T>, timeoutMs: number, otherwise: T): Promise<T> {
  const late = Promise.withResolvers<T>();
  const timer = setTimeout(late.resolve, timeoutMs, otherwise);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

let abandonedCalls = 0;

/**
 * Makes a call into native code and waits for it until the signal is aborted; then it throws the signal's reason.
 * Native calls cannot be cancelled: an abandoned one runs on in the background, and `hasAbandonedNativeCall` is true
 * until it finishes.
 */
export async function awaitNativeCall<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let isFinished = false;
  const result = call().finally(() => {
    isFinished = true;
  });
  try {
    return await raceAbort(result, signal);
  } finally {
    if (!isFinished) countAbandoned(result);
  }
}

/**
 * Tells whether an abandoned native call still runs. It holds memory and a thread, so a worker process should exit after
 * its report instead of taking another input.
 */
export function hasAbandonedNativeCall(): boolean {
  return abandonedCalls > 0;
}

function countAbandoned(call: Promise<unknown>): void {
  abandonedCalls += 1;
  const finish = (): void => {
    abandonedCalls -= 1;
  };
  call.then(finish, finish);
}
