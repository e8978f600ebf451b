import { randomBytes } from 'node:crypto';
import type { JobResponse, JobResultEntry } from '#contract/job.ts';
import type { JobLabels } from '#contract/job-labels.ts';
import type { ListedJob } from '#contract/job-list.ts';
import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import type { OperationName, OperationOutcome } from '#operations/operation.ts';

/**
 * A job as callers see it. Its results are passed on as the stored text: parsing and writing those of 10,000 inputs would
 * block other requests.
 */
export interface JobSnapshot extends ListedJob {
  /** JSON of a list of result entries; an empty one until the job has ended. */
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

/** The result of one input, as callers see it and as the store keeps it. */
export type ResultEntry = JobResultEntry;

/** Returns the outputs that a result names, each once. */
export function outputPathsIn({ output_path: output, sidecar_path: sidecar }: ResultEntry): readonly string[] {
  return [...new Set([output, sidecar])].filter((path) => path !== undefined);
}

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
  /** The job whose failed inputs it runs again. */
  readonly retriedFrom?: string | undefined;
  /** The address that its result is sent to. */
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
export interface InputAttempt {
  readonly jobId: string;
  readonly inputIndex: number;
  /** Counts from 1. */
  readonly attempt: number;
}

/** The progress of an input in bytes; the total is known once it was opened. */
export interface ByteProgress {
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

/** The progress of several running inputs together. */
export interface RunningProgress extends ByteProgress {
  /** The number of inputs that the parts which are done make up: two that are half done count 1. */
  readonly inputsDone: number;
}

/** Returns the part of an input that is done, from 0 to 1; 0 before it was opened. */
export function partDone({ bytesDone, bytesTotal }: ByteProgress): number {
  return bytesTotal > 0 ? Math.min(1, bytesDone / bytesTotal) : 0;
}

/** Adds the progress of running inputs to a job whose record does not have it. */
export function withRunning<J extends ListedJob>(job: J, { bytesDone, bytesTotal, inputsDone }: RunningProgress): J {
  const { progress } = job;
  if (progress === undefined) return job;
  return {
    ...job,
    progress: {
      ...progress,
      bytes_done: progress.bytes_done + bytesDone,
      bytes_total: progress.bytes_total + bytesTotal,
      fraction: Math.min(1, progress.fraction + inputsDone / progress.inputs_total),
    },
  };
}

export const NO_PROGRESS: ByteProgress = { bytesDone: 0, bytesTotal: 0 };
export const NOTHING_RUNNING: RunningProgress = { ...NO_PROGRESS, inputsDone: 0 };

/** Process exits after which an input fails. */
export const MAX_PROCESS_EXITS = 3;

/**
 * Exits of the whole service or node after which an input that ran at that time fails. Higher, because such an exit is
 * rarely caused by an input; bounded, because an input could bring down its host each time.
 */
export const MAX_SERVICE_EXITS = 10;

export function succeededEntry(inputIndex: number, outcome: OperationOutcome): ResultEntry {
  const { outputPath, warnings } = outcome;
  return {
    input_index: inputIndex,
    status: 'succeeded',
    ...(outputPath !== undefined && { output_path: outputPath }),
    ...('sidecarPath' in outcome && outcome.sidecarPath !== undefined && { sidecar_path: outcome.sidecarPath }),
    ...('verification' in outcome && { verification: outcome.verification }),
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

/** Returns the entry of an input whose job was cancelled before it had succeeded. */
export function cancelledEntry(inputIndex: number): ResultEntry {
  return { input_index: inputIndex, status: 'cancelled' };
}

/** Converts names of the code to those of the API: `fileCount` becomes `file_count`. */
function snakeCased(details: object): object {
  const named = Object.entries(details).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  return Object.fromEntries(named);
}

/** Converts details to plain JSON. A 64-bit size becomes a text, because it must not prevent a result from being recorded. */
function plainJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (_key, part) => (typeof part === 'bigint' ? String(part) : part)));
}

/** Returns the entry of an input whose process has exited for the last time; `exitCause` ends the sentence "the last time …". */
export function processExitEntry(inputIndex: number, times: number, exitCause: string): ResultEntry {
  return failedEntry(inputIndex, new AppError('INPUT_ENDED_PROCESS', { times, how: exitCause }).toData());
}

/** Identifies repeated submissions of one job. */
export interface IdempotencyKey {
  /** As the client sent it, printable ASCII; behind the name of its caller and a space, where it has one. */
  readonly key: string;
  /** SHA-256 of what was asked for, in hexadecimal. */
  readonly digest: string;
}

/**
 * Makes job identifiers: version 7 UUIDs (RFC 9562 §5.7). They sort by the time they were made, and within one
 * millisecond by the order: the twelve bits behind the time count up (RFC 9562 §6.2, method 1).
 */
export class JobIds {
  #lastMs = 0;
  #count = 0;

  next(nowMs: number = Date.now()): string {
    this.#advance(nowMs);
    const bytes = randomBytes(16);
    bytes.writeUIntBE(this.#lastMs, 0, 6);
    bytes.writeUInt16BE(0x7000 | this.#count, 6);
    bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
    const hex = bytes.toString('hex');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  }

  /** Counts on from the last identifier when the clock was set back, or after 4096 in a millisecond. */
  #advance(nowMs: number): void {
    if (nowMs > this.#lastMs) {
      this.#lastMs = nowMs;
      this.#count = 0;
    } else if (this.#count < 0xfff) {
      this.#count += 1;
    } else {
      this.#lastMs += 1;
      this.#count = 0;
    }
  }
}

/** Returns a text that sorts before the identifiers of all jobs that were submitted at a time or later. */
export function firstJobIdAt(time: Date): string {
  const hex = Math.max(0, time.getTime()).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}
