import { formatErrors, formatWarnings } from './catalogue/formats.ts';
import { inputErrors } from './catalogue/inputs.ts';
import { configErrors, databaseErrors, jobErrors } from './catalogue/jobs.ts';
import { placementErrors, s3Errors } from './catalogue/outputs.ts';
import { packagingErrors, packagingWarnings } from './catalogue/packaging.ts';
import { operationErrors, provenanceErrors, provenanceWarnings } from './catalogue/provenance.ts';
import { publicationErrors, publicationWarnings } from './catalogue/publications.ts';
import { controlErrors, requestErrors } from './catalogue/requests.ts';
import { signerErrors } from './catalogue/signers.ts';
import type { CatalogueEntry, WarningEntry } from './entry.ts';

/** Errors that an input may fail with, beside those of S3. */
const errorsOfInputs = {
  ...inputErrors,
  ...formatErrors,
  ...publicationErrors,
  ...packagingErrors,
  ...operationErrors,
  ...provenanceErrors,
  ...placementErrors,
  ...jobErrors,
};

/** Every operational error of the service: one row per reason, grouped by where it arises. */
export const catalogue = {
  ...configErrors,
  ...requestErrors,
  ...errorsOfInputs,
  ...databaseErrors,
  ...controlErrors,
  ...signerErrors,
  ...s3Errors,
};

/** The catalogue's keys: stable names that callers may match on (`error_details.reason`). */
export type Reason = keyof typeof catalogue;

/** The reasons that an input may fail with. */
export const INPUT_REASONS = Object.keys({ ...errorsOfInputs, ...s3Errors }) as readonly Reason[];

/** The details that a reason's message is made from. */
export type DetailsOf<R extends Reason> = (typeof catalogue)[R] extends CatalogueEntry<infer Details> ? Details : never;

/** Everything to know about an output that was made all the same. No name stands among the errors, too. */
export const warningCatalogue = {
  ...formatWarnings,
  ...packagingWarnings,
  ...publicationWarnings,
  ...provenanceWarnings,
};

/** The keys of the warnings: stable names that callers may match on (`warning_details[].reason`). */
export type WarningReason = keyof typeof warningCatalogue;

/** The details that a warning's message is made from. */
export type WarningDetailsOf<R extends WarningReason> =
  (typeof warningCatalogue)[R] extends WarningEntry<infer Details> ? Details : never;

/** Returns true for errors of reaching, opening and reading an input, as opposed to those about its content. */
export function isInputError(reason: Reason): boolean {
  return Object.hasOwn(inputErrors, reason);
}
