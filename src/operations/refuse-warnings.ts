import { AppError } from '#errors/app-error.ts';
import type { Warning } from '#errors/warning.ts';

/** The part of an operation's `params` that says whether a warning fails the input. */
export interface StrictParams {
  readonly strict?: boolean | undefined;
}

/**
 * Refuses every warning when the request is strict. Called as soon as there can be warnings of a kind, and in any case before
 * the output is committed. Throws `PACKAGING_WARNED`.
 */
export function refuseWarnings(warnings: readonly Warning[], params: StrictParams | null | undefined): void {
  if (params?.strict !== true || warnings.length === 0) return;
  throw new AppError('PACKAGING_WARNED', {
    warnings: warnings.map(({ message }) => message),
    reasons: warnings.map(({ reason }) => reason),
  });
}
