import type { JobResponse } from '#contract/job.ts';
import type { JobLabels } from '#contract/job-labels.ts';
import type { ListedJob } from '#contract/job-list.ts';
import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import type { ByteProgress, OperationName } from '#operations/operation.ts';

/**
 * A job as callers see it. Its results are passed on as the stored text: parsing and writing those of 10,000 inputs would
 * block other requests.
 */
export interface JobSnapshot extends ListedJob {
  /** JSON of a list of result entries; an empty one until the job has finished. */
  readonly resultsJson: string;
}

/** Returns the JSON of a job in the contract's shape, with additional fields when they are given. */
export function jobJson({ job_id, status, resultsJson, ...rest }: JobSnapshot, more: object = {}): string {
  const before = JSON.stringify({ job_id, status });
  const after = JSON.stringify({ ...rest, ...more });
  return `${before.slice(0, -1)},"results":${resultsJson},${after.slice(1)}`;
}

/** A change of a job, as those who follow it see it. */
export interface JobEvent {
  /**
   * `progress`: its progress changed; `input`: inputs finished, `resultsJson` has their entries only; `done`: the job
   * finished, `resultsJson` has all entries.
   */
  readonly type: 'progress' | 'input' | 'done';
  readonly job: JobSnapshot;
}

/** A change of the list of jobs. `reload`: there were more changes than are told one by one. */
export type ListEvent = { readonly type: 'jobs'; readonly jobs: readonly ListedJob[] } | { readonly type: 'reload' };

/** A submission that was validated and admitted by the HTTP module. */
export interface Submission {
  readonly operation: OperationName;
  readonly request: {
    readonly inputs: readonly ApiInputRef[];
    readonly output?: ApiOutputSpec | null | undefined;
    readonly params?: unknown;
  };
  /** True when the caller waits for it: such jobs go first. */
  readonly sync: boolean;
  /** The name that its caller gave it. */
  readonly clientReference?: string | null | undefined;
  readonly labels?: JobLabels | null | undefined;
  /** The identity that a retry keeps; else the request or the caller's default says which. */
  readonly identity?: string | null | undefined;
  /** The job whose inputs it runs again. */
  readonly retriedFrom?: string | undefined;
  readonly retriedInputs?: RetriedInputs | undefined;
  /** The address that its result is sent to. */
  readonly callbackUrl?: string | null | undefined;
  readonly idempotency?: IdempotencyKey | null;
  /** The name of who submits it; null where no tokens are set. */
  readonly caller?: string | null;
  /** The W3C `traceparent` of the submission; null where it is not traced. */
  readonly traceParent?: string | null;
}

/** The inputs of a job that another job runs again. */
export interface RetriedInputs {
  readonly inputIndexes: readonly number[];
  /** True where there is to be no job if a retry has one of them already. */
  readonly isOnce: boolean;
}

/**
 * A submission that is a job: a new one, or the one that its idempotency key stood for already, or that has its retried inputs
 * already.
 */
export interface SubmittedJob extends JobResponse {
  readonly replayed: boolean;
}

/** Identifies an input. */
export interface InputId {
  readonly jobId: string;
  readonly inputIndex: number;
}

/** Names one lease of one input. Reports of an older attempt are refused. */
export interface InputAttempt extends InputId {
  /** Counts from 1. */
  readonly attempt: number;
}

export const NO_PROGRESS: ByteProgress = { bytesDone: 0, bytesTotal: 0 };

/** Identifies repeated submissions of one job. */
export interface IdempotencyKey {
  /** As the client sent it, printable ASCII; behind the name of its caller and a space, where it has one. */
  readonly key: string;
  /** SHA-256 of what was asked for, in hexadecimal. */
  readonly digest: string;
}
