import type { JobResponse, JobResultEntry } from '#contract/job.ts';
import type { ListedJob } from '#contract/job-list.ts';
import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import type { InputOutcome, OperationName } from '#operations/operation.ts';
import type { IdempotencyKey } from './idempotency-key.ts';

/**
 * A job as callers see it. Its results are passed on as the text that they are kept as: to parse those of 10,000 inputs, only
 * to write them again, would hold up everybody else.
 */
export interface JobSnapshot extends ListedJob {
  /** JSON of a list of result entries; an empty one until the job has ended. */
  readonly resultsJson: string;
}

/** JSON of a job in the contract's shape, with more fields where they are given. */
export function jobJson({ job_id, status, resultsJson, ...rest }: JobSnapshot, more: object = {}): string {
  const before = JSON.stringify({ job_id, status });
  const after = JSON.stringify({ ...rest, ...more });
  return `${before.slice(0, -1)},"results":${resultsJson},${after.slice(1)}`;
}

/** What became of one input, as callers see it and as the store keeps it. */
export type ResultEntry = JobResultEntry;

/** A submission, as the HTTP room hands it over: validated and admitted. */
export interface Submission {
  readonly operation: OperationName;
  readonly request: {
    readonly inputs: readonly ApiInputRef[];
    readonly output?: ApiOutputSpec | null | undefined;
    readonly params?: unknown;
  };
  /** Whether somebody waits for it: such jobs go first. */
  readonly sync: boolean;
  /** Where its result is sent. */
  readonly callbackUrl?: string | null | undefined;
  readonly idempotency?: IdempotencyKey | null;
  /** The name of who submits it; null where no tokens are set. */
  readonly caller?: string | null;
  /** The W3C `traceparent` of the submission; null where it is not traced. */
  readonly traceParent?: string | null;
}

/** A submission that is a job: a new one, or the one that its idempotency key stood for already. */
export interface SubmittedJob extends JobResponse {
  readonly replayed: boolean;
}

/** Names one start of one input. What an older attempt reports is refused. */
export interface Claim {
  readonly jobId: string;
  readonly inputIndex: number;
  /** Counts from 1. */
  readonly attempt: number;
}

/** How many bytes of an input are done; the total is known once it was opened. */
export interface ByteProgress {
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

export const NO_PROGRESS: ByteProgress = { bytesDone: 0, bytesTotal: 0 };

/** An input that ends the process working on it is tried this often. */
export const MAX_PROCESS_ENDS = 3;

/**
 * An input that runs when its whole service or node ends is tried this often. Higher, because the end of a service is
 * rarely an input's doing; bounded, because an input could bring down its host each time.
 */
export const MAX_SERVICE_ENDS = 10;

export function succeededEntry(inputIndex: number, { outputPath, warnings }: InputOutcome): ResultEntry {
  return {
    input_index: inputIndex,
    status: 'succeeded',
    output_path: outputPath,
    ...(warnings.length > 0 && {
      warnings: warnings.map(({ message }) => message),
      warning_details: warnings.map(({ reason, details }) => ({ ...snakeCased(plainJson(details)), reason })),
    }),
  };
}

export function failedEntry(inputIndex: number, data: AppErrorData): ResultEntry {
  const error = AppError.fromData(data);
  const { field } = error.location;
  return {
    input_index: inputIndex,
    status: 'failed',
    error: error.callerMessage,
    error_code: error.code,
    error_details: {
      ...(error.isConfidential ? {} : snakeCased(plainJson(error.details))),
      ...(field !== undefined && { field }),
      reason: error.reason,
    },
  };
}

/** The entry of an input whose job was cancelled before it had succeeded. */
export function cancelledEntry(inputIndex: number): ResultEntry {
  return { input_index: inputIndex, status: 'cancelled' };
}

/** The names of the code as those of the interface: `fileCount` becomes `file_count`. */
function snakeCased(details: object): object {
  const named = Object.entries(details).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  return Object.fromEntries(named);
}

/** Details are written by every room; a 64-bit size among them must not keep a result from being recorded. */
function plainJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (_key, part) => (typeof part === 'bigint' ? String(part) : part)));
}

/** The entry of an input that has ended its process for the last time; `how` ends the sentence "the last time …". */
export function processEndedEntry(inputIndex: number, times: number, how: string): ResultEntry {
  return failedEntry(inputIndex, new AppError('INPUT_ENDED_PROCESS', { times, how }).toData());
}
