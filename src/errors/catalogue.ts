import { configErrors } from './config-errors.ts';
import { controlErrors } from './control-errors.ts';
import { databaseErrors } from './database-errors.ts';
import type { CatalogueEntry, WarningEntry } from './entry.ts';
import { formatErrors } from './format-errors.ts';
import { formatWarnings } from './format-warnings.ts';
import { jobErrors } from './job-errors.ts';
import { operationErrors } from './operation-errors.ts';
import { packagingErrors } from './packaging-errors.ts';
import { packagingWarnings } from './packaging-warnings.ts';
import { placementErrors } from './placement-errors.ts';
import { provenanceErrors } from './provenance-errors.ts';
import { provenanceWarnings } from './provenance-warnings.ts';
import { publicationErrors } from './publication-errors.ts';
import { publicationWarnings } from './publication-warnings.ts';
import { requestErrors } from './request-errors.ts';
import { s3Errors } from './s3-errors.ts';
import { sourceErrors } from './source-errors.ts';

/** Every operational error of the service: one row per reason, grouped by where it arises. */
export const catalogue = {
  ...configErrors,
  ...requestErrors,
  ...sourceErrors,
  ...formatErrors,
  ...publicationErrors,
  ...packagingErrors,
  ...operationErrors,
  ...provenanceErrors,
  ...placementErrors,
  ...jobErrors,
  ...databaseErrors,
  ...controlErrors,
  ...s3Errors,
};

/** The catalogue's keys: stable names that callers may match on (`error_details.reason`). */
export type Reason = keyof typeof catalogue;

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
