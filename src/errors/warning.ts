import { type WarningDetailsOf, type WarningReason, warningCatalogue } from './catalogue.ts';
import type { WarningEntry } from './entry.ts';

/** Something to know about an output that was made all the same. Plain data: it crosses processes as it is. */
export interface Warning {
  readonly reason: WarningReason;
  /** One or two sentences for a person. */
  readonly message: string;
  readonly details: object;
}

/** Returns the warning of a catalogue row: `warning('START_NOT_DECODABLE', { file, seconds })`. */
export function warning<R extends WarningReason>(reason: R, details: WarningDetailsOf<R>): Warning {
  const { message } = warningCatalogue[reason] as unknown as WarningEntry<object>;
  return { reason, message: message(details), details };
}

/** Returns the warnings in their order, each sentence once. */
export function distinctWarnings(warnings: readonly Warning[]): Warning[] {
  return [...new Map(warnings.map((each) => [each.message, each])).values()];
}
