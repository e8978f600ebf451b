import { AppError } from '#errors/app-error.ts';
import type { OutputChecker, SdkAsset } from '#provenance/official-reader.ts';
import type { InputContext } from './operation.ts';

/**
 * Time-out of a read-back: an allowance, plus the time at the slowest accepted rate. The reader's time also grows with the
 * square of the number of boxes (20,000 fragments in one file took it over a minute).
 */
const MIN_READ_BACK_BYTES_PER_S = 5 * 1024 * 1024;
const READ_BACK_ALLOWANCE_MS = 600_000;

/** Has the official reader validate a staged output. Throws `READ_BACK_TIMED_OUT`, or what the reader finds. */
export async function readBack(
  check: OutputChecker,
  asset: SdkAsset,
  sizeBytes: number,
  context: InputContext,
): Promise<void> {
  const boundMs = READ_BACK_ALLOWANCE_MS + (sizeBytes / MIN_READ_BACK_BYTES_PER_S) * 1000;
  const late = AbortSignal.timeout(Math.ceil(boundMs));
  const signal = AbortSignal.any([context.signal, late]);
  try {
    await context.scratch.withHeartbeats(() => check(asset, signal));
  } catch (cause) {
    if (late.aborted && !context.signal.aborted) throw new AppError('READ_BACK_TIMED_OUT', { boundMs }, { cause });
    throw cause;
  }
  context.reached('verified');
}
