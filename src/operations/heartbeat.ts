import type { InputContext } from './operation.ts';

/** Interval at which progress is reported while the official reader, which reports none, is at work. */
const HEARTBEAT_INTERVAL_MS = 30_000;

/** Reports the progress of an input as complete again and again until a call of the official reader has finished. */
export async function withHeartbeat<Result>(
  { progress }: Pick<InputContext, 'progress'>,
  sizeBytes: number,
  call: () => Promise<Result>,
): Promise<Result> {
  const heartbeat = setInterval(() => progress(sizeBytes, sizeBytes), HEARTBEAT_INTERVAL_MS);
  try {
    return await call();
  } finally {
    clearInterval(heartbeat);
  }
}
