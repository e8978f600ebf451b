import type { ApiInputRef } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { requestedName } from '#inputs/input-name.ts';
import type { ByteProgress, OperationOutcome } from '#operations/operation.ts';
import { operations } from '#operations/registry.ts';
import { DEFAULT_IDENTITY } from '#provenance/signing-identity.ts';
import type { Log } from '#telemetry/logger.ts';
import type { RunReport } from '#telemetry/run-report.ts';
import type { WorkerPool } from '#workers/worker-pool.ts';
import type { RunResult } from '#workers/worker-run.ts';
import { type InputAttempt, MAX_PROCESS_EXITS, NO_PROGRESS, NOTHING_RUNNING, type RunningProgress } from '../job.ts';
import { cancelledEntry, failedEntry, type ResultEntry, succeededEntry } from '../result-entries.ts';
import type { JobRequest, LeasedInput } from '../store/job-store.ts';
import type { OutputPathRegistries } from './output-path-registry.ts';
import type { InputRun, RunEnd, WorkSource } from './work-source.ts';

interface InputRunsOptions {
  readonly pool: WorkerPool;
  readonly log: Log;
  /** Removes the staged outputs of an attempt whose worker may be gone. Never rejects. */
  readonly clearStagings: (lease: InputAttempt) => Promise<void>;
  readonly outputPaths: OutputPathRegistries;
  readonly source: Pick<WorkSource, 'isClustered' | 'mayCommit'>;
  /** Called after each run. */
  readonly runEnded: (report: RunReport) => void;
}

/** Runs that may have finished without removing what they staged: a failed one, what S3 would not let it remove. */
const MAY_LEAVE_STAGINGS: ReadonlySet<RunResult['type']> = new Set([
  'failed',
  'process-exited',
  'over-budget',
  'aborted',
]);

/** The inputs that run in this process: has a worker run each, and returns how each run finished. */
export class InputRuns {
  readonly #options: InputRunsOptions;
  readonly #byJob = new Map<string, Set<InputRun>>();

  constructor(options: InputRunsOptions) {
    this.#options = options;
  }

  /** Adds a run, which `progressOf` counts and `cancel` stops until it is closed. */
  open(run: InputRun): void {
    this.#byJob.set(run.jobId, (this.#byJob.get(run.jobId) ?? new Set()).add(run));
  }

  close(run: InputRun): void {
    const ofJob = this.#byJob.get(run.jobId);
    ofJob?.delete(run);
    if (ofJob?.size === 0) this.#byJob.delete(run.jobId);
  }

  /** Returns true while a run of the job is open. */
  has(jobId: string): boolean {
    return this.#byJob.has(jobId);
  }

  /** Returns the progress of the open runs of a job together. */
  progressOf(jobId: string): RunningProgress {
    return [...(this.#byJob.get(jobId) ?? [])].reduce((sum, { progress }) => plus(sum, progress), NOTHING_RUNNING);
  }

  /** Stops the running inputs of a job; each ends as cancelled, unless it had succeeded. */
  cancel(jobId: string): void {
    for (const run of this.#byJob.get(jobId) ?? []) run.cancel();
  }

  /** Stops everything that runs; it ends as `stopped`. */
  stop(reason: Error): void {
    for (const ofJob of this.#byJob.values()) for (const { abort } of ofJob) abort.abort(reason);
  }

  /**
   * Runs an input in a worker. Never rejects. `awaitsSignature` is called, at most once, when a signature or time-stamp takes
   * long.
   */
  async do(run: InputRun, lease: LeasedInput, request: JobRequest, awaitsSignature: () => void): Promise<RunEnd> {
    const { pool, clearStagings, outputPaths, source, runEnded } = this.#options;
    const startedAtMs = Date.now();
    const unreservedFolder = outputPaths.unreservedFolderOf(lease.jobId);
    const result = await pool.run(
      {
        ...lease,
        ...request,
        identity: identityOf(request),
        leased: source.isClustered,
        ...(unreservedFolder !== undefined && { unreservedFolder }),
      },
      {
        signal: run.abort.signal,
        progress: (progress) => {
          run.progress = progress;
        },
        reserveOutputPath: (destination) => outputPaths.reserve(destination, lease),
        confirmLease: () => source.mayCommit(lease),
        awaitsSignature,
      },
    );
    if (MAY_LEAVE_STAGINGS.has(result.type)) await clearStagings(lease);
    const end = this.#endOf(run, lease, result);
    runEnded(reportOf({ lease, request, startedAtMs, end, result, progress: run.progress }));
    return end;
  }

  #endOf(run: InputRun, lease: LeasedInput, result: RunResult): RunEnd {
    const { log } = this.#options;
    const ids = { job_id: lease.jobId, input_index: lease.inputIndex };
    switch (result.type) {
      case 'aborted':
        if (!run.cancelled) return { type: 'stopped' };
        log.info(ids, 'input cancelled');
        return {
          type: 'finished',
          entry: cancelledEntry(lease.inputIndex),
          progress: NO_PROGRESS,
          transient: false,
          digest: null,
        };
      case 'process-exited':
        log.warn({ ...ids, attempt: lease.attempt, exit_cause: result.exitCause }, 'the worker of an input exited');
        if (lease.processExits + 1 < MAX_PROCESS_EXITS) return { type: 'process-exited', exitCause: result.exitCause };
        return this.#finish(run, lease, failureBy(result.exitCause));
      case 'succeeded':
      case 'over-budget':
      case 'failed':
        return this.#finish(run, lease, result);
    }
  }

  /** Logs a run with a result, and returns how it ended. */
  #finish(run: InputRun, lease: LeasedInput, result: FinishedResult): RunEnd {
    const { log } = this.#options;
    const ids = { job_id: lease.jobId, input_index: lease.inputIndex };
    if (result.type === 'failed' && result.error === null)
      log.error({ ...ids, stack: result.bug }, 'an input met a bug');
    const entry = entryOf(lease, result);
    const { status, warnings, error_details: details } = entry;
    const error = 'error' in result && result.error !== null ? AppError.fromData(result.error) : null;
    const write = error?.operational ? log.warn.bind(log) : log.info.bind(log);
    const phases = 'phases' in result ? result.phases : {};
    const failure = error !== null && { input: nameOf(lease), error: error.message };
    write(
      { ...ids, ...failure, reason: details?.reason, budget: details?.['budget'], warnings, phases_ms: phases },
      `input ${status}`,
    );
    const digest = result.type === 'succeeded' ? manifestDigestOf(result.outcome) : null;
    return { type: 'finished', entry, progress: run.progress, transient: error?.transient ?? false, digest };
  }
}

/** Returns the name of the identity that an input signs with; null where it signs nothing. */
function identityOf({ operation }: JobRequest): string | null {
  // Another release may have recorded an operation that this one does not know: the worker refuses it.
  return operations.some(({ name, signs }) => signs && name === operation) ? DEFAULT_IDENTITY : null;
}

/** The result of a run that is the result of its input, or a failure that may be retried. */
type FinishedResult = RunResult & { type: 'succeeded' | 'failed' | 'over-budget' };

/** Returns the failure of an input at the last exit of its process that it may have. */
function failureBy(exitCause: string): FinishedResult {
  const error = new AppError('INPUT_ENDED_PROCESS', { times: MAX_PROCESS_EXITS, how: exitCause });
  return { type: 'failed', error: error.toData(), phases: {}, calls: {} };
}

/** Returns the name of an input, for the log. */
function nameOf({ inputJson, inputIndex }: LeasedInput): string {
  return requestedName(JSON.parse(inputJson) as ApiInputRef, inputIndex);
}

interface ReportParts {
  readonly lease: InputAttempt;
  readonly request: JobRequest;
  readonly startedAtMs: number;
  readonly end: RunEnd;
  readonly result: RunResult;
  readonly progress: ByteProgress;
}

function reportOf({ lease, request, startedAtMs, end, result, progress }: ReportParts): RunReport {
  const details = end.type === 'finished' ? end.entry.error_details : undefined;
  const budget = details?.reason === 'INPUT_OVER_BUDGET' ? details['budget'] : undefined;
  return {
    jobId: lease.jobId,
    inputIndex: lease.inputIndex,
    attempt: lease.attempt,
    operation: request.operation,
    end: end.type === 'finished' ? end.entry.status : 'stopped',
    ...(details !== undefined && { reason: details.reason }),
    ...(typeof budget === 'string' && { budget }),
    startedAtMs,
    endedAtMs: Date.now(),
    phases: 'phases' in result ? result.phases : {},
    bytesDone: progress.bytesDone,
    calls: 'phases' in result ? result.calls : {},
    traceParent: request.traceParent,
  };
}

function entryOf(lease: InputAttempt, result: FinishedResult): ResultEntry {
  const { jobId, inputIndex } = lease;
  if (result.type === 'succeeded') return succeededEntry(inputIndex, result.outcome);
  return failedEntry(inputIndex, result.error ?? new AppError('INPUT_MET_BUG', { jobId, inputIndex }).toData());
}

function plus({ bytesDone, bytesTotal, inputsDone }: RunningProgress, one: ByteProgress): RunningProgress {
  return {
    bytesDone: bytesDone + one.bytesDone,
    bytesTotal: bytesTotal + one.bytesTotal,
    inputsDone: inputsDone + partDone(one),
  };
}

/** Returns the part of an input that is done, from 0 to 1; 0 before it was opened. */
function partDone({ bytesDone, bytesTotal }: ByteProgress): number {
  return bytesTotal > 0 ? Math.min(1, bytesDone / bytesTotal) : 0;
}

/**
 * The pauses before the retries of an input that failed with a transient error, in milliseconds. Its last failure
 * is its result.
 */
const RETRY_DELAYS_MS = [1_000, 4_000, 15_000];

/** Returns the pause before an input is retried, in milliseconds; null when the end of its run is its result. */
export function retryPauseMs({ transientFailures }: LeasedInput, end: RunEnd): number | null {
  if (end.type !== 'finished' || end.entry.status !== 'failed' || !end.transient) return null;
  return RETRY_DELAYS_MS[transientFailures] ?? null;
}

/** Returns the digest of the manifest that was written; null where none was. */
function manifestDigestOf(outcome: OperationOutcome): string | null {
  return 'manifestDigest' in outcome ? outcome.manifestDigest : null;
}
