import type { RunEnd } from './dispatching/input-runs.ts';
import type { ClaimedInput } from './store/claim-inputs.ts';

/** Before each try after a failure that may pass, so long a pause; when there are no more, the failure is the result. */
const RETRY_PAUSES_MS = [1_000, 4_000, 15_000];

/** How long to wait before an input is tried again whose run ended so; null where that is how it ends. */
export function retryPauseMs({ transientFailures }: ClaimedInput, end: RunEnd): number | null {
  if (end.type !== 'ended' || end.entry.status !== 'failed' || !end.transient) return null;
  return RETRY_PAUSES_MS[transientFailures] ?? null;
}
