import type { ApiInputRef } from '#contract/request.ts';
import { signs } from '#contract/signing-operations.ts';
import { AppError } from '#errors/app-error.ts';
import { requestedName } from '#inputs/input-name.ts';
import type { ByteProgress, OperationOutcome } from '#operations/operation.ts';
import type { Log } from '#telemetry/logger.ts';
import type { RunReport } from '#telemetry/run-report.ts';
import type { WorkerPool } from '#workers/worker-pool.ts';
import { failedRun, type RunResult } from '#workers/worker-run.ts';
import { type NodeIdentities, problemOfIdentity } from '../identities.ts';
import { type InputAttempt, NO_PROGRESS } from '../job.ts';
import type { Outages } from '../outages/outages.ts';
import type { JobQueue } from '../queue/job-queue.ts';
import { cancelledEntry, failedEntry, type ResultEntry, succeededEntry } from '../result-entries.ts';
import type { FinishedInput, JobRequest, LeasedInput, ReleasedInput } from '../store/job-store.ts';
import type { OutputPathRegistries } from './output-path-registry.ts';

/** Exits of its worker process after which an input fails. */
const MAX_PROCESS_EXITS = 3;

const CANCELLED = Symbol('cancelled');

/** One run of a leased input, from its start until it is handed in. */
export class InputRun {
  readonly lease: LeasedInput;
  readonly startedAtMs = Date.now();
  /** The request of its job; null until it was read. */
  request: JobRequest | null = null;
  readonly abort = new AbortController();
  /** The error of the dependency that hangs, because of which it was stopped; null where none was. */
  heldUpBy: AppError | null = null;
  #progress: ByteProgress = NO_PROGRESS;
  #progressedAtMs = performance.now();
  /** The slot of one that awaits a signature, or has ended and is being handed in, is free for another input. */
  state: 'has-slot' | 'awaits-signature' | 'ended' = 'has-slot';
  /** When it began to wait for a signature that takes long; null where it does not. */
  signatureAskedAtMs: number | null = null;

  constructor(lease: LeasedInput) {
    this.lease = lease;
  }

  get progress(): ByteProgress {
    return this.#progress;
  }

  set progress(progress: ByteProgress) {
    this.#progress = progress;
    this.#progressedAtMs = performance.now();
  }

  /** Milliseconds without progress. */
  get idleMs(): number {
    return performance.now() - this.#progressedAtMs;
  }

  /** Milliseconds for which it has waited for a signature; 0 where it waits for none. */
  get signatureMs(): number {
    return this.signatureAskedAtMs === null ? 0 : performance.now() - this.signatureAskedAtMs;
  }

  /** Stops the run because a dependency hangs that it needs. */
  holdUp(error: AppError): void {
    this.heldUpBy = error;
    this.abort.abort(error);
  }

  /** Stops the run; it ends as cancelled, unless it had succeeded. */
  cancel(): void {
    this.abort.abort(CANCELLED);
  }

  get isCancelled(): boolean {
    return this.abort.signal.reason === CANCELLED;
  }
}

export interface RunnerOptions {
  readonly pool: WorkerPool;
  readonly log: Log;
  /** Removes the staged outputs of an attempt whose worker may be gone. Never rejects. */
  readonly clearStagings: (lease: InputAttempt) => Promise<void>;
  readonly outputPaths: OutputPathRegistries;
  readonly queue: Pick<JobQueue, 'isShared' | 'mayCommit'>;
  readonly outages: Outages;
  /** Retries inputs that meet an outage as others that failed for a moment, instead of waiting. */
  readonly retriesOutages: boolean;
  /** Returns the name of the identity that jobs of releases sign with that had one. */
  readonly defaultIdentity: () => string;
  /** The identities of this node; undefined where it signs nothing. */
  readonly identities?: NodeIdentities | undefined;
  /** Called after each run. */
  readonly runEnded: (report: RunReport) => void;
}

/** A run with a result. */
type FinishedRun = Extract<RunResult, { readonly type: 'succeeded' | 'failed' }>;

/** Runs leased inputs in workers, and says how each is handed in: with its result, or to run again. */
export class InputRunner {
  readonly #options: RunnerOptions;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /**
   * Runs an input in a worker. Never rejects. `awaitsSignature` is called, at most once, when a signature or time-stamp takes
   * long.
   */
  async run(run: InputRun, request: JobRequest, awaitsSignature: () => void): Promise<FinishedInput | ReleasedInput> {
    const { clearStagings, outages, outputPaths, retriesOutages, runEnded } = this.#options;
    const { lease } = run;
    const result = await this.#runInWorker(run, request, awaitsSignature);
    const failure = 'error' in result && result.error !== null ? AppError.fromData(result.error) : null;
    const error = failure ?? (result.type === 'aborted' ? run.heldUpBy : null);
    // Before the rest, which may take long while a bucket is away.
    const waiting = await this.#waitingFor(error, lease);
    // A failed run, too, may have left what S3 would not let it remove. The service must not use what hangs: the next start clears it.
    if (result.type !== 'succeeded' && run.heldUpBy === null) await clearStagings(lease);
    const end = waiting ?? this.#endOf(run, result);
    runEnded(reportOf(run, request, result, end));
    if ('entry' in end && end.entry.status === 'succeeded') outages.passed(lease.needs);
    if ('entry' in end ? end.entry.status !== 'failed' : end.reason !== 'outage') return end;
    await outputPaths.release(lease);
    return 'entry' in end
      ? this.retryOf(end, lease, retriesOutages ? error?.isTransient : error?.class === 'retry')
      : end;
  }

  /** Returns how an input is handed in that met an outage; null where it met none, or has waited for too long. */
  async #waitingFor(error: AppError | null, lease: LeasedInput): Promise<ReleasedInput | null> {
    const { outages, retriesOutages } = this.#options;
    if (error === null || retriesOutages) return null;
    const now = new Date();
    const waitedMs = lease.waiting === null ? 0 : now.getTime() - Date.parse(lease.waiting.since);
    const met = await outages.meet(error, lease.needs, waitedMs);
    if (met === null) return null;
    const { dependency, pauseMs } = met;
    const since = lease.waiting?.dependency === dependency ? lease.waiting.since : now.toISOString();
    if (outages.isOverdue(since)) return null;
    const needs = lease.needs.includes(dependency) ? lease.needs : [...lease.needs, dependency];
    const retryAt = pauseMs === null ? null : now.getTime() + pauseMs;
    return { lease, reason: 'outage', dependency, since, error: error.toData(), needs, retryAt };
  }

  #runInWorker(run: InputRun, request: JobRequest, awaitsSignature: () => void): Promise<RunResult> {
    const { pool, outputPaths, queue, identities: own } = this.#options;
    const identity = this.#identityOf(request);
    // A reload may have taken it away since the lease.
    const error = identity === null || own === undefined ? null : problemOfIdentity(identity, own);
    if (error !== null) return Promise.resolve(failedRun(error));
    const { jobId, inputIndex, attempt, inputJson, needs } = run.lease;
    const { operation, outputJson, paramsJson } = request;
    const { signal } = run.abort;
    return pool.run(
      {
        ...{ jobId, inputIndex, attempt, operation, identity, inputJson, outputJson, paramsJson },
        leased: queue.isShared,
        writesOutputFolder: needs.includes('output_folder'),
      },
      {
        signal,
        progress: (progress) => {
          run.progress = progress;
        },
        reserveOutputPath: (destination) => outputPaths.reserve(destination, run.lease),
        confirmLease: async () => {
          if (await queue.mayCommit(run.lease, signal)) return undefined;
          return new AppError('LEASE_LOST', { jobId, inputIndex }).toData();
        },
        awaitsSignature: (isAwaited) => {
          run.signatureAskedAtMs = isAwaited ? performance.now() : null;
          if (isAwaited) awaitsSignature();
        },
      },
    );
  }

  /** Returns the name of the identity that an input signs with; null where it signs nothing. */
  #identityOf({ operation, identity }: JobRequest): string | null {
    return signs(operation) ? (identity ?? this.#options.defaultIdentity()) : null;
  }

  /** Returns how a failed input is handed in: to run again after a pause while its error is transient, up to a limit. */
  retryOf(failed: FinishedInput, lease: LeasedInput, isTransient: boolean | undefined): FinishedInput | ReleasedInput {
    const pauseMs = isTransient ? RETRY_DELAYS_MS[lease.transientFailures] : undefined;
    if (pauseMs === undefined) return failed;
    const { jobId, inputIndex } = lease;
    const why = { input: nameOf(lease), problem: failed.entry.error };
    this.#options.log.info(
      { job_id: jobId, input_index: inputIndex, ...why, pause_ms: pauseMs },
      'input is tried again',
    );
    return { lease, reason: 'transient-failure', retryAt: Date.now() + pauseMs };
  }

  #endOf(run: InputRun, result: RunResult): FinishedInput | ReleasedInput {
    const { log } = this.#options;
    const { lease } = run;
    const ids = { job_id: lease.jobId, input_index: lease.inputIndex };
    switch (result.type) {
      case 'aborted':
        if (!run.isCancelled) return { lease, reason: 'stopped' };
        log.info(ids, 'input cancelled');
        return { lease, entry: cancelledEntry(lease.inputIndex), progress: NO_PROGRESS, digest: null };
      case 'process-exited':
        log.warn({ ...ids, attempt: lease.attempt, exit_cause: result.exitCause }, 'the worker of an input exited');
        if (lease.processExits + 1 < MAX_PROCESS_EXITS) return { lease, reason: 'process-exited' };
        return this.#finish(
          run,
          failedRun(new AppError('INPUT_ENDED_PROCESS', { times: MAX_PROCESS_EXITS, how: result.exitCause })),
        );
      case 'succeeded':
      case 'failed':
        return this.#finish(run, result);
    }
  }

  /** Logs a run with a result, and returns that. */
  #finish({ lease, progress }: InputRun, result: FinishedRun): FinishedInput {
    const { log } = this.#options;
    const ids = { job_id: lease.jobId, input_index: lease.inputIndex };
    if ('bug' in result) log.error({ ...ids, stack: result.bug }, 'an input met a bug');
    const entry = entryOf(lease, result);
    const { status, warnings, error_details: details } = entry;
    const error = 'error' in result && result.error !== null ? AppError.fromData(result.error) : null;
    const write = error?.isOperational ? log.warn.bind(log) : log.info.bind(log);
    const failure = error !== null && { input: nameOf(lease), error: error.message };
    write(
      { ...ids, ...failure, reason: details?.reason, budget: details?.['budget'], warnings, phases_ms: result.phases },
      `input ${status}`,
    );
    return { lease, entry, progress, digest: result.type === 'succeeded' ? manifestDigestOf(result.outcome) : null };
  }
}

/** Returns the name of an input, for the log. */
function nameOf({ inputJson, inputIndex }: LeasedInput): string {
  return requestedName(JSON.parse(inputJson) as ApiInputRef, inputIndex);
}

function reportOf(
  { lease, startedAtMs, progress }: InputRun,
  request: JobRequest,
  result: RunResult,
  end: FinishedInput | ReleasedInput,
): RunReport {
  const details = 'entry' in end ? end.entry.error_details : undefined;
  const budget = details?.reason === 'INPUT_OVER_BUDGET' ? details['budget'] : undefined;
  return {
    jobId: lease.jobId,
    inputIndex: lease.inputIndex,
    attempt: lease.attempt,
    operation: request.operation,
    end: 'entry' in end ? end.entry.status : 'stopped',
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

function entryOf({ jobId, inputIndex }: InputAttempt, result: FinishedRun): ResultEntry {
  if (result.type === 'succeeded') return succeededEntry(inputIndex, result.outcome);
  return failedEntry(inputIndex, result.error ?? new AppError('INPUT_MET_BUG', { jobId, inputIndex }).toData());
}

/**
 * The pauses before the retries of an input that failed with a transient error, in milliseconds. Its last failure
 * is its result.
 */
const RETRY_DELAYS_MS = [1_000, 4_000, 15_000];

/** Returns the digest of the manifest that was written; null where none was. */
function manifestDigestOf(outcome: OperationOutcome): string | null {
  return 'manifestDigest' in outcome ? outcome.manifestDigest : null;
}
