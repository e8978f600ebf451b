/** The error codes a caller can meet, as `error.code` of the error body and `error_code` of a result entry. */
export type ApiErrorCode =
  | 'VALIDATION_FAILED'
  | 'INVALID_INPUT_TYPE'
  | 'UNAUTHORIZED'
  | 'FORBIDDEN'
  | 'FORBIDDEN_HOST'
  | 'NOT_FOUND'
  | 'JOB_NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'IDEMPOTENCY_CONFLICT'
  | 'JOB_NOT_RETRYABLE'
  | 'REQUEST_TIMEOUT'
  | 'RANGE_NOT_SATISFIABLE'
  | 'PAYLOAD_TOO_LARGE'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'CALLER_LIMIT'
  | 'SERVICE_OVERLOADED'
  | 'SERVICE_UNAVAILABLE'
  | 'PROCESSING_FAILED'
  | 'INTERNAL_ERROR';

/** Told to callers of every failure of the job store. */
export const STORE_UNUSABLE =
  'The job store cannot be used just now. Nothing that was accepted is lost: try again later. The log of the service says more.';

/**
 * The class of a reason, which decides what becomes of an input that fails with it:
 * - `request`: the request or its source is at fault; the input fails at once
 * - `retry`: the same input may succeed soon (a server of somebody else, another node); it runs again a few times
 * - `outage`: a dependency of the service is away; the input waits until that is back
 * - `service`: the service or its host is at fault (a bug, a program that is missing, a budget); the input fails at once
 */
export type ErrorClass = 'request' | 'retry' | 'outage' | 'service';

/** The kinds of parts of a deployment that inputs wait for while one is away. `operation`: a node of a release that has it. */
export const DEPENDENCY_KINDS = [
  'input_bucket',
  'output_bucket',
  'input_folder',
  'output_folder',
  'scratch_folder',
  'time_stamp_authority',
  'signer',
  'operation',
] as const;
export type DependencyKind = (typeof DEPENDENCY_KINDS)[number];

/** One row of the catalogue: what a reason means to the caller, and whether trying again can help. */
export interface CatalogueEntry<Details extends object> {
  readonly code: ApiErrorCode;
  readonly class: ErrorClass;
  /**
   * The kinds of dependencies that may be the cause. With the class `request` the reason is an outage where the probe of one of
   * them fails, too.
   */
  readonly dependencies: readonly DependencyKind[];
  /** States what was wrong, where, and what to do, in one or two sentences. Never holds a secret. */
  readonly message: (details: Details) => string;
  /**
   * Told to callers instead, where the message and its details name what is inside the deployment: hosts, folders,
   * processes. These stand in the log only. Undefined where callers may read the message.
   */
  readonly callersSee: string | undefined;
}

/**
 * Declares a catalogue row: `entry<{ path: string }>('PROCESSING_FAILED', ({ path }) => …)`.
 * The details' type becomes the type that `new AppError(reason, details)` asks for.
 */
export function entry<Details extends object>(
  code: ApiErrorCode,
  message: (details: Details) => string,
  {
    class: errorClass = code === 'INTERNAL_ERROR' || code === 'SERVICE_UNAVAILABLE' ? 'service' : 'request',
    dependencies = [],
    callersSee,
  }: Partial<Pick<CatalogueEntry<Details>, 'class' | 'dependencies' | 'callersSee'>> = {},
): CatalogueEntry<Details> {
  return { code, class: errorClass, dependencies, message, callersSee };
}

/** The kinds of buckets, for reasons of S3 that do not tell which side they are about. */
export const BUCKETS: readonly DependencyKind[] = ['input_bucket', 'output_bucket'];

/** One row of the catalogue of warnings: the sentence that tells what happened, where, and what can be done. */
export interface WarningEntry<Details extends object> {
  readonly message: (details: Details) => string;
}

/** Declares a row of the catalogue of warnings: `warningEntry<{ file: string }>(({ file }) => …)`. */
export function warningEntry<Details extends object>(message: (details: Details) => string): WarningEntry<Details> {
  return { message };
}

/** Names that a message lists one by one; the others are counted. */
const MAX_NAMES_LISTED = 10;

/** The first of many names, and how many there are: what a message and its details hold of them. */
export interface NameSample {
  readonly names: readonly string[];
  readonly count: number;
}

export function sampleOfNames(all: readonly string[]): NameSample {
  return { names: all.slice(0, MAX_NAMES_LISTED), count: all.length };
}

/** Joins quoted names for a sentence: `"a", "b" and 3 more`. */
export function listNames({ names, count }: NameSample): string {
  const more = count > names.length ? ` and ${count - names.length} more` : '';
  return `${names.map((name) => `"${name}"`).join(', ')}${more}`;
}

/** A position in a playlist or MPD; `line` counts from one. */
export interface PlaylistPosition {
  readonly playlist: string;
  readonly line: number;
}

/** The treatment of a folder that is a publication already. */
export type PublicationTreatment = 'copied' | 'repackaged' | 'signed';

/** The kind of access to S3 that failed, as it completes "the right to …". */
export type S3Action = 'read' | 'list' | 'write';
