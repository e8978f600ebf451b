import { AppError, type AppErrorData } from '#errors/app-error.ts';
import type { InputReport } from '#telemetry/input-report.ts';
import {
  type ByteProgress,
  type Claim,
  cancelledEntry,
  failedEntry,
  NO_PROGRESS,
  type ResultEntry,
  succeededEntry,
} from '../job.ts';
import type { Log } from '../log.ts';
import type { ClaimedInput, JobRequest } from '../store/claim-inputs.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import type { RunResult } from '../workers/worker-run.ts';

export interface InputRunsOptions {
  readonly pool: WorkerPool;
  readonly log: Log;
  /** Removes what a claim left behind whose worker may be gone. Never rejects. */
  readonly clearStagings: (claim: Claim) => Promise<void>;
  /** Reserves a destination for an input of its job; undefined where it is granted. Never rejects. */
  readonly claimDestination: (destination: string, claim: Claim) => Promise<AppErrorData | undefined>;
  /** The folder that an input of a job may write a file into without claiming it, as far as one is known. */
  readonly openFolderOf?: (jobId: string) => string | undefined;
  /** Whether a claimed input may be delivered now; undefined where it may. Absent where claims are held for good. */
  readonly mayDeliver?: (claim: ClaimedInput) => Promise<AppErrorData | undefined>;
  /** Told how each run went. */
  readonly ended: (report: InputReport) => void;
}

/** How the run of an input ended, as it is to be recorded. */
export type RunEnd =
  | {
      readonly type: 'ended';
      readonly entry: ResultEntry;
      readonly progress: ByteProgress;
      /** Whether the same input may succeed later without anybody changing it. */
      readonly transient: boolean;
      /** What tells the delivered output from those of other attempts. */
      readonly digest: string | null;
    }
  /** `how` ends the sentence "the process ended …". */
  | { readonly type: 'process-ended'; readonly how: string }
  /** It was stopped for no fault of its own. */
  | { readonly type: 'stopped' };

const CANCELLED = Symbol('cancelled');

/** Runs that may have ended without removing what they staged. */
const LEFT_STAGINGS: ReadonlySet<RunResult['type']> = new Set(['process-ended', 'over-budget', 'displaced', 'aborted']);

/** A place for an input that runs, from before it is claimed until its end is recorded. */
export class InputRun {
  readonly jobId: string;
  readonly abort = new AbortController();
  progress: ByteProgress = NO_PROGRESS;

  constructor(jobId: string) {
    this.jobId = jobId;
  }

  get cancelled(): boolean {
    return this.abort.signal.reason === CANCELLED;
  }
}

/** The inputs that run in this process: has each done by a worker, and says what came of it. */
export class InputRuns {
  readonly #options: InputRunsOptions;
  readonly #byJob = new Map<string, Set<InputRun>>();

  constructor(options: InputRunsOptions) {
    this.#options = options;
  }

  /** Makes a place for an input of a job. To be closed when its end is recorded. */
  open(jobId: string): InputRun {
    const run = new InputRun(jobId);
    this.#byJob.set(jobId, (this.#byJob.get(jobId) ?? new Set()).add(run));
    return run;
  }

  close(run: InputRun): void {
    const ofJob = this.#byJob.get(run.jobId);
    ofJob?.delete(run);
    if (ofJob?.size === 0) this.#byJob.delete(run.jobId);
  }

  /** How far the running inputs of a job are, together. */
  progressOf(jobId: string): ByteProgress {
    return [...(this.#byJob.get(jobId) ?? [])].reduce((sum, { progress }) => plus(sum, progress), NO_PROGRESS);
  }

  /** Stops the running inputs of a job; each ends as cancelled, unless it had succeeded. */
  cancel(jobId: string): void {
    for (const { abort } of this.#byJob.get(jobId) ?? []) abort.abort(CANCELLED);
  }

  /** Stops everything that runs; it ends as `stopped`. */
  stop(reason: Error): void {
    for (const ofJob of this.#byJob.values()) for (const { abort } of ofJob) abort.abort(reason);
  }

  /**
   * Has an input done. Never rejects. `settling` is called, at most once, when another input may run beside this one,
   * which mostly waits.
   */
  async do(run: InputRun, claim: ClaimedInput, request: JobRequest, settling?: () => void): Promise<RunEnd> {
    const { pool, clearStagings, claimDestination, openFolderOf, mayDeliver, ended } = this.#options;
    const startedAtMs = Date.now();
    const openFolder = openFolderOf?.(claim.jobId);
    const result = await pool.run(
      { ...claim, ...request, leased: mayDeliver !== undefined, ...(openFolder !== undefined && { openFolder }) },
      {
        signal: run.abort.signal,
        progress: (progress) => {
          run.progress = progress;
        },
        claim: (destination) => claimDestination(destination, claim),
        mayDeliver: async () => mayDeliver?.(claim),
        ...(settling !== undefined && { settling }),
      },
    );
    if (LEFT_STAGINGS.has(result.type)) await clearStagings(claim);
    const end = this.#endOf(run, claim, result);
    ended(reportOf({ claim, request, startedAtMs, end, result, progress: run.progress }));
    return end;
  }

  #endOf(run: InputRun, claim: Claim, result: RunResult): RunEnd {
    const { log } = this.#options;
    const ids = { job_id: claim.jobId, input_index: claim.inputIndex };
    switch (result.type) {
      case 'aborted':
        if (!run.cancelled) return { type: 'stopped' };
        log.info(ids, 'input cancelled');
        return {
          type: 'ended',
          entry: cancelledEntry(claim.inputIndex),
          progress: NO_PROGRESS,
          transient: false,
          digest: null,
        };
      case 'displaced':
        log.warn(
          { ...ids, attempt: claim.attempt, how: result.how },
          'the worker of an input ended with other inputs in it: each is done again alone',
        );
        return { type: 'stopped' };
      case 'process-ended':
        log.warn({ ...ids, attempt: claim.attempt, how: result.how }, 'the worker of an input ended');
        return { type: 'process-ended', how: result.how };
      case 'succeeded':
      case 'over-budget':
      case 'failed': {
        if (result.type === 'failed' && result.error === null)
          log.error({ ...ids, stack: result.bug }, 'an input met a bug');
        const entry = entryOf(claim, result);
        const { status, warnings, error_details: details } = entry;
        const error = 'error' in result && result.error !== null ? AppError.fromData(result.error) : null;
        const tell = error?.operational ? log.warn.bind(log) : log.info.bind(log);
        const phases = 'phases' in result ? result.phases : {};
        const problem = error?.isConfidential ? error.message : undefined;
        tell(
          { ...ids, reason: details?.reason, budget: details?.['budget'], warnings, phases_ms: phases, problem },
          `input ${status}`,
        );
        const transient = error?.transient ?? false;
        const digest = (result.type === 'succeeded' && result.outcome.digest) || null;
        return { type: 'ended', entry, progress: run.progress, transient, digest };
      }
    }
  }
}

interface EndedRun {
  readonly claim: Claim;
  readonly request: JobRequest;
  readonly startedAtMs: number;
  readonly end: RunEnd;
  readonly result: RunResult;
  readonly progress: ByteProgress;
}

function reportOf({ claim, request, startedAtMs, end, result, progress }: EndedRun): InputReport {
  const details = end.type === 'ended' ? end.entry.error_details : undefined;
  const budget = details?.reason === 'INPUT_OVER_BUDGET' ? details['budget'] : undefined;
  return {
    jobId: claim.jobId,
    inputIndex: claim.inputIndex,
    attempt: claim.attempt,
    operation: request.operation,
    end: end.type === 'ended' ? end.entry.status : 'stopped',
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

function entryOf(claim: Claim, result: RunResult & { type: 'succeeded' | 'failed' | 'over-budget' }): ResultEntry {
  const { jobId, inputIndex } = claim;
  if (result.type === 'succeeded') return succeededEntry(inputIndex, result.outcome);
  return failedEntry(inputIndex, result.error ?? new AppError('INPUT_MET_BUG', { jobId, inputIndex }).toData());
}

function plus(a: ByteProgress, b: ByteProgress): ByteProgress {
  return { bytesDone: a.bytesDone + b.bytesDone, bytesTotal: a.bytesTotal + b.bytesTotal };
}
