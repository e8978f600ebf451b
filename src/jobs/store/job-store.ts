import type { JobStatus } from '#contract/job.ts';
import type { JobLabels } from '#contract/job-labels.ts';
import type { ListedJob } from '#contract/job-list.ts';
import type { ApiInputRef } from '#contract/request.ts';
import type { AppErrorData } from '#errors/app-error.ts';
import type { ByteProgress, OperationName } from '#operations/operation.ts';
import type { JobReport } from '#telemetry/run-report.ts';
import type { JobScope } from '../caller.ts';
import type { InputAttempt, JobSnapshot, Submission } from '../job.ts';
import type { ResultEntry } from '../result-entries.ts';

/**
 * The durable record of jobs and their inputs. SQLite and PostgreSQL implement it; `test/jobs/store-contract.ts` and
 * `test/jobs/control-contract.ts` run on both.
 *
 * Glossary:
 * - *Lease*: gives a queued input to one process. It is identified by its attempt number; a newer lease invalidates it.
 * - *Reserved input*: leased and not running: ahead of time, so that no worker waits for the disk between two inputs, or in
 *   the pause before a retry.
 * - *Late*: refused, because the lease is not the newest one of its input, or the input is finished. Nothing is written.
 * - *Finished*: succeeded, failed or cancelled. A job finishes with its last input.
 *
 * Obligations of every implementation:
 * - A promise resolves only after the change is committed to disk, unless a method says otherwise.
 * - Each method is one transaction: it happens completely or not at all.
 * - A method rejects with an AppError (`STORE_…`, `DATABASE_…`) when the database cannot be used. Any other error is a
 *   defect of a statement, and retrying cannot help.
 * - Arguments and results are plain data, so that they can be sent to another thread.
 */
export interface JobStore {
  /**
   * Records a job and its inputs. Resolves with null, or with the known job when the idempotency key was used before, or a
   * retry has an input that it is to retry once; then nothing is written. After a null the job may be acknowledged.
   */
  submitJob(job: NewJob): Promise<KnownJob | null>;

  /** Finds the job that was submitted with an idempotency key, or null. */
  findByIdempotencyKey(key: string): Promise<KnownJob | null>;

  /**
   * Reads a job as last recorded, with its results once it is finished. Resolves with null when there is none in the scope.
   */
  findJob(jobId: string, scope?: JobScope): Promise<JobSnapshot | null>;

  /** Reads the request of a job without the queries of its addresses; null when there is no such job in the scope. */
  findRequest(jobId: string, scope?: JobScope): Promise<RecordedRequest | null>;

  /** Reads a page of jobs, newest first. */
  listJobs(filter: JobFilter): Promise<JobPage>;

  /** Reads the jobs that were submitted or finished since a time, and those that are running, newest first. */
  recentJobs(since: Date, limit: number): Promise<JobPage>;

  /**
   * Cancels a job: inputs that are queued or reserved finish at once; running inputs are left to their workers. Resolves
   * with null when there is no such job in the scope.
   */
  cancelJob(jobId: string, scope?: JobScope): Promise<Cancellation | null>;

  /** Returns those of the jobs that are finished or deleted. */
  finishedAmong(jobIds: readonly string[]): Promise<readonly string[]>;

  /** Returns those of the jobs that are cancelled. */
  cancelledAmong(jobIds: readonly string[]): Promise<readonly string[]>;

  /** Reads what a retry of a job needs. Resolves with null when there is no such job in the scope. */
  findRetriedJob(jobId: string, scope?: JobScope): Promise<RetriedJob | null>;

  /** Returns jobs that a retry may take inputs of, in the order of their submission, those after `after`. */
  findFailedJobs(filter: FailureFilter, limit: number, after?: string): Promise<readonly string[]>;

  /** Counts the failed inputs that such a retry leaves out: another has them, or the query of their address was erased. */
  countLeftOut(filter: FailureFilter): Promise<number>;

  /** Returns the indexes of the finished inputs of a job, in ascending order. */
  finishedInputs(jobId: string): Promise<readonly number[]>;

  /** Returns a JSON array with the result entries of finished inputs of a job in the scope; at most 1000 indexes. */
  resultEntries(jobId: string, inputIndexes: readonly number[], scope?: JobScope): Promise<string>;

  /**
   * Deletes a batch of jobs that finished before a time, oldest first, and returns their number: 0 when none are left. Jobs
   * with a pending callback are kept.
   */
  pruneJobs(finishedBefore: Date): Promise<number>;

  /**
   * Reserves queued inputs in the order of their priorities; fewer when fewer are queued. Each part has its bounds on
   * priorities: it takes inputs within the first one, then within the next one while it needs more.
   */
  leaseInputs(parts: readonly LeasePart[], filter: LeaseFilter): Promise<readonly (readonly LeasedInput[])[]>;

  /**
   * Records that reserved inputs were started. Ignores late leases. The embedded queue does not wait for it: a kill may lose it, and a
   * result is never written before it.
   */
  startInputs(leases: readonly InputAttempt[]): Promise<void>;

  /** Records the progress of running inputs, where it has changed. Ignores late leases. */
  recordProgress(running: readonly (InputAttempt & ByteProgress)[]): Promise<void>;

  /** Returns what the inputs of a job share; null when there is no such job. */
  requestOfJob(jobId: string): Promise<JobRequest | null>;

  /** Returns the paths that a job reads and has written so far. */
  pathsOfJob(jobId: string): Promise<JobPaths>;

  /** Records the result of an input, and finishes its job where it is the last one. */
  finishInput(result: FinishedInput): Promise<HandedIn>;

  /**
   * Releases a leased input without a result. It is queued again; with a time to retry at, it stays reserved until it is
   * released as stopped. It finishes when its job is cancelled. Exits of its process and transient failures are counted.
   */
  releaseInput(released: ReleasedInput): Promise<HandedIn>;

  /**
   * Recovers all leases of an earlier run of the service, which must have exited. Running inputs are queued again, or fail
   * after `MAX_SERVICE_EXITS` exits; reserved ones are queued again. To be called before the first lease.
   */
  recoverLeases(): Promise<RecoveredLeases>;

  /**
   * Reserves an output path for an input of a job that several nodes work on. Returns false when another input of the job
   * reserved it, or a path above or below it. Repeating a reservation succeeds. `path` has its links resolved. The
   * commit does not wait for the disk: after a crash of the database the input runs again.
   */
  reserveOutputPath(lease: InputAttempt, path: string): Promise<boolean>;

  /** Releases all output paths of an input that committed nothing. */
  releaseOutputPaths(lease: InputAttempt): Promise<void>;

  /**
   * Leases callbacks that are due, longest due first; where the clock was set back by hours, also those postponed before.
   * Each becomes due again after the lease unless it is closed or postponed before, because its sender may exit.
   */
  leaseCallbacks(count: number, leaseMs: number): Promise<readonly DueCallback[]>;

  /** Makes a callback due after a pause. `unsent` does not count as an attempt. */
  postponeCallback(jobId: string, pauseMs: number, was: 'sent' | 'unsent'): Promise<void>;

  /** Closes a callback, and reduces its URL to the origin. */
  closeCallback(jobId: string, state: 'delivered' | 'given_up'): Promise<void>;

  /** Counts the queued inputs of all nodes by the caller of their job. */
  countQueued(): Promise<QueuedCounts>;

  /** Counts the queued inputs of all nodes that need one of the dependencies. */
  countNeeding(dependencies: readonly string[]): Promise<number>;

  /** Counts the inputs of all nodes that wait, and have met what they wait for, by their dependency. */
  countWaiting(): Promise<readonly (readonly [dependency: string, count: number])[]>;

  /** Returns the identities of unfinished jobs that are none of these. */
  identitiesBeside(identities: readonly string[]): Promise<readonly string[]>;

  /** Records since when queued inputs wait for a dependency that none of them has tried, where they do not wait for another one. */
  recordWaiting(dependency: string, since: string): Promise<void>;

  /** Counts the inputs of jobs that wait for a dependency: those that met its outage, and those that need one which is away. */
  waitingInputs(jobIds: readonly string[], away: readonly string[]): Promise<readonly WaitingInputs[]>;

  /** Counts what is queued and running on all nodes. */
  queueState(): Promise<QueueState>;

  /** Writes a row as large as a small job. Rejects when the database cannot be written. */
  probeWrite(): Promise<void>;

  /** Completes the calls that were begun, and closes the database. */
  close(): Promise<void>;
}

/** A submission with its identifier. */
export interface NewJob extends Submission {
  readonly jobId: string;
  readonly queuedAt: Date;
  /** The dependencies that each input needs, as far as they are known, in the order of the inputs. */
  readonly needs?: readonly (readonly string[])[];
}

/** The job that an idempotency key was used for, or that retries an input. */
export interface KnownJob {
  readonly jobId: string;
  readonly status: JobStatus;
  /** SHA-256 of the request that used the key, in hexadecimal; empty where there was none. */
  readonly digest: string;
}

/** The failed inputs in the scope that everything given here holds for. */
export interface FailureFilter extends JobScope {
  readonly reasons?: readonly string[] | undefined;
  /** The jobs that finished then or later, as a timestamp of the store. */
  readonly since?: string | undefined;
  /** The jobs that finished before. */
  readonly until?: string | undefined;
  /** Only jobs whose identifiers sort before this one. */
  readonly before: string;
  readonly operation?: OperationName | undefined;
}

/** The selection of jobs to list: those in the scope that everything else given here holds for. */
export interface JobFilter extends JobScope {
  readonly limit: number;
  readonly status?: JobStatus | undefined;
  readonly operation?: OperationName | undefined;
  readonly clientReference?: string | undefined;
  readonly label?: { readonly name: string; readonly value: string } | undefined;
  /** The name of the caller who submitted them. */
  readonly submitter?: string | undefined;
  /** Only these jobs. */
  readonly jobIds?: readonly string[] | undefined;
  /** Only jobs that were submitted before this one. */
  readonly before?: string | undefined;
}

/** The parts of a job that a retry takes over. */
export interface RetriedJob {
  readonly operation: OperationName;
  readonly caller: string | null;
  /** The identity that it signed with; null where it signed nothing, or an older release took it. */
  readonly identity: string | null;
  readonly clientReference: string | null;
  readonly labels: JobLabels | null;
  readonly outputJson: string;
  readonly paramsJson: string;
  /** False while there are inputs that are not finished. */
  readonly isFinished: boolean;
  readonly inputCount: number;
  /** The inputs that failed or were cancelled so far, in order. */
  readonly unsuccessful: readonly UnsuccessfulInput[];
}

export interface UnsuccessfulInput {
  readonly inputIndex: number;
  readonly status: 'failed' | 'cancelled';
  /** The reason of the catalogue that it failed with. */
  readonly reason: string | null;
  /** True when a retry has it. */
  readonly isRetried: boolean;
  readonly inputJson: string;
  /** Null where an older release took the job. */
  readonly name: string | null;
  /** True when the query of an address was erased that the input needs: its own, or that of its parent or sidecar. */
  readonly isErased: boolean;
}

export interface JobPage {
  readonly jobs: readonly ListedJob[];
  /** True when there are older jobs. */
  readonly more: boolean;
}

/** The request of a job, in the shape of the contract. */
export interface RecordedRequest {
  readonly operation: OperationName;
  /** A text, because a batch of 10,000 inputs is passed on as it is. */
  readonly bodyJson: string;
}

/** The effect of cancelling a job. */
export interface Cancellation {
  /** The name of who submitted the job; null where no tokens were set. */
  readonly caller: string | null;
  /** False when the job was finished or cancelled before; then nothing was written. */
  readonly changed: boolean;
  /** The report of the job when nothing of it was running, so that it is finished. */
  readonly finishedJob: JobReport | null;
  /** The number of inputs that finished at once. */
  readonly inputCount: number;
}

/** The numbers of queued inputs of each caller; null stands for jobs without one. */
export type QueuedCounts = ReadonlyMap<string | null, number>;

/** Inputs that are leased within the same bounds. */
export interface LeasePart {
  readonly count: number;
  /** Upper bounds of priorities, the preferred one first; the last one bounds nothing. */
  readonly maxPriorities: readonly number[];
}

/** The inputs that a lease may be of. */
export interface LeaseFilter {
  /** The only jobs that may be leased of; null for all. */
  readonly onlyJobs: readonly string[] | null;
  readonly withoutJobs: readonly string[];
  /** Inputs without a caller are never left out. On PostgreSQL nothing is leased while these callers have more than 10,000 jobs. */
  readonly withoutCallers: readonly string[];
  /** Inputs that need one of these are left out. */
  readonly withoutDependencies: readonly string[];
  /** Inputs that have waited since before this time are not left out: they fail. ISO 8601. */
  readonly overdueBefore: string;
  /** Inputs that need another signer than these are left out, however long they have waited; null for none. */
  readonly onlySigners: readonly string[] | null;
}

/** A leased input. The worker parses the JSON. */
export interface LeasedInput extends InputAttempt {
  /** The number of transient failures so far. */
  readonly transientFailures: number;
  /** The number of exits of its worker process so far. */
  readonly processExits: number;
  readonly priority: number;
  /** The name of who submitted its job; null where no tokens are set. */
  readonly caller: string | null;
  /** The dependencies that it needs, as far as they are known. */
  readonly needs: readonly string[];
  /** The dependency that it waits for, or waited for last, and since when; null where it met none. */
  readonly waiting: { readonly dependency: string; readonly since: string } | null;
  readonly inputJson: string;
  /** The request of its job, when that has a single input and retries no other. That of another job is read separately. */
  readonly request: JobRequest | null;
}

/** The part of a request that all inputs of a job share. The worker parses the JSON. */
export interface JobRequest {
  readonly operation: OperationName;
  readonly outputJson: string;
  readonly paramsJson: string;
  readonly traceParent: string | null;
  /** The identity that its inputs sign with; null where they sign nothing, or an older release took it. */
  readonly identity: string | null;
}

/** The result of an input. */
export interface FinishedInput {
  readonly lease: InputAttempt;
  readonly entry: ResultEntry;
  readonly progress: ByteProgress;
  /** SHA-256 of the manifest of the output, which tells it from those of other attempts; null when there is none. */
  readonly digest: string | null;
}

/** A leased input without a result, which is to run again. */
export type ReleasedInput = { readonly lease: InputAttempt } & (
  | { readonly reason: 'stopped' | 'process-exited' }
  /** `retryAt`: milliseconds since 1970 by the clock of this process. */
  | { readonly reason: 'transient-failure'; readonly retryAt: number }
  /** `since`: the time at which it met the outage first. With `retryAt` it waits until then whatever else happens. */
  | {
      readonly reason: 'outage';
      readonly dependency: string;
      readonly since: string;
      readonly error: AppErrorData;
      readonly needs: readonly string[];
      readonly retryAt: number | null;
    }
);

/** Inputs of a job that wait for a dependency. */
export interface WaitingInputs {
  readonly jobId: string;
  readonly dependency: string;
  readonly count: number;
  /** The time at which the first of them met the outage; null where none has. */
  readonly since: string | null;
  /** The error that one of them met; null where none has. */
  readonly error: AppErrorData | null;
}

/** The effect of handing in a lease, with a result or without. */
export interface HandedIn {
  /** `queued`: it waits again. `late`: nothing was written. */
  readonly input: 'finished' | 'queued' | 'late';
  /** The report of the job that finished by that. */
  readonly finishedJob: JobReport | null;
}

/** The effects of a recovery. */
export interface RecoveredLeases {
  /** The number of recovered inputs. */
  readonly inputs: number;
  /** The number of jobs that have queued inputs now. */
  readonly waitingJobs: number;
}

/** The paths that a job reads, and those that it has written so far. */
export interface JobPaths {
  readonly inputs: readonly ApiInputRef[];
  /** The request's `params`. */
  readonly params: unknown;
  readonly outputs: readonly { readonly inputIndex: number; readonly outputPath: string }[];
  /** The same of the jobs that it retries, newest first, as far as they are kept. */
  readonly retried: readonly Omit<JobPaths, 'retried'>[];
}

/** The longest pause between two attempts to send a callback, in milliseconds. */
export const MAX_CALLBACK_PAUSE_MS = 3600 * 1000;

/** A leased callback, to be sent now. */
export interface DueCallback {
  readonly jobId: string;
  /** May contain a secret. */
  readonly url: string;
  /** The number of attempts, this one included. */
  readonly attempts: number;
  /** The time when the job finished. */
  readonly finishedAt: string;
}

/** The numbers of inputs and callbacks of all nodes. */
export interface QueueState {
  readonly queued: number;
  readonly reserved: number;
  readonly running: number;
  /** The submission time of the oldest job with a queued input; null when there is none. */
  readonly oldestQueuedAt: string | null;
  readonly callbacks: number;
}
