import type { AppError, AppErrorData } from '#errors/app-error.ts';
import type { ByteProgress } from '#operations/operation.ts';
import type { TreeUsage } from '#processes/process-tree.ts';
import { type Budgets, type Excess, excessOf, type InputUsage } from './input-budgets.ts';
import type { ProgressMessage, RunAnswer, WorkerState } from './worker-protocol.ts';

/** The service's side of a running input. */
export interface RunHooks {
  /** Aborted when the input is to stop. */
  readonly signal: AbortSignal;
  progress(progress: ByteProgress): void;
  /** Resolves with undefined when the output path is reserved for the input, otherwise with the refusal. */
  reserveOutputPath(destination: string): Promise<AppErrorData | undefined>;
  /** Resolves with undefined when the worker may commit now, otherwise with the refusal. */
  confirmLease(): Promise<AppErrorData | undefined>;
  /** Called when a signature or time-stamp is waited for, and takes long: another input can run meanwhile; and when that has ended. */
  awaitsSignature(isAwaited: boolean): void;
}

/** What a worker measured of a run. */
type Measured = Pick<WorkerState, 'phases' | 'calls'>;

/** The result of a run. `exitCause` ends the sentence "the process exited …". */
export type RunResult =
  | (Exclude<RunAnswer, { readonly type: 'not-begun' }> & Measured)
  | { readonly type: 'process-exited'; readonly exitCause: string; readonly wasReady: boolean }
  /** It was asked to stop, and has. */
  | { readonly type: 'aborted' };

/** Returns the result of a run that failed without an answer of its worker. */
export function failedRun(error: AppError): Extract<RunResult, { readonly type: 'failed' }> {
  return { type: 'failed', error: error.toData(), phases: {}, calls: {} };
}

/** A worker whose input has used this much processor time lets others have the cores first. */
const LONG_CPU_MS = 15_000;

/** One run of an input in a worker process, held to its budgets by samples of the process tree. */
export class WorkerRun {
  readonly hooks: RunHooks;
  readonly #budgets: Budgets;
  /** The last sample. */
  #last: TreeUsage | null = null;
  #usage: InputUsage = {
    size: { bytes: 0, files: 0 },
    cpuMs: 0,
    readBytes: 0,
    writtenBytes: 0,
    phase: 'started',
    phaseMs: 0,
  };
  /** The budget that it exceeds; null where it keeps to all. */
  excess: Excess | null = null;
  /** Questions of the worker that the service has not answered. */
  #openQuestions = 0;

  constructor(hooks: RunHooks, budgets: Budgets) {
    this.hooks = hooks;
    this.#budgets = budgets;
  }

  /** True when it has used much processor time. */
  get isLong(): boolean {
    return this.#usage.cpuMs > LONG_CPU_MS;
  }

  /**
   * The excess of a run whose process was killed for lack of memory: at the last sample it held at least half of its limit,
   * which it can pass before the next one. Null where it held less.
   */
  get presumedMemoryExcess(): Excess | null {
    const used = this.#last?.memoryBytes ?? 0;
    const limit = this.#budgets.memory_bytes;
    return used < limit / 2 ? null : { budget: 'memory', unit: 'bytes', limit, used, phase: this.#usage.phase };
  }

  /**
   * Charges what the process used since the sample before, and returns the budget that is exceeded then. The first sample of an
   * input charges nothing: some of what was used before it was of the input before.
   */
  sampled(usage: TreeUsage | null, elapsedMs: number): Excess['budget'] | null {
    const before = this.#last;
    this.#last = usage ?? before;
    if (before !== null && this.#last !== null) this.#charge(before, this.#last, elapsedMs);
    // The first one counts: a process that is being killed for it has let its memory go.
    this.excess ??= excessOf(this.#budgets, this.#usage, this.#last);
    return this.excess?.budget ?? null;
  }

  /** Takes note of what the worker said of the input. */
  progressed({ phase, size, bytesDone, bytesTotal }: ProgressMessage): void {
    const phaseMs = phase === this.#usage.phase ? this.#usage.phaseMs : 0;
    this.#usage = { ...this.#usage, phase, phaseMs, size };
    this.hooks.progress({ bytesDone, bytesTotal });
  }

  /** Waits for the service's answer to a question of the worker. The input is not charged for that time. */
  async answered<Answer>(answer: Promise<Answer>): Promise<Answer> {
    this.#openQuestions += 1;
    try {
      return await answer;
    } finally {
      this.#openQuestions -= 1;
    }
  }

  #charge(before: TreeUsage, now: TreeUsage, elapsedMs: number): void {
    const usage = this.#usage;
    // A descendant that is orphaned takes what it used out of the sum.
    this.#usage = {
      ...usage,
      cpuMs: usage.cpuMs + Math.max(now.cpuMs - before.cpuMs, 0),
      readBytes: usage.readBytes + Math.max(now.readBytes - before.readBytes, 0),
      writtenBytes: usage.writtenBytes + Math.max(now.writtenBytes - before.writtenBytes, 0),
      phaseMs: usage.phaseMs + (this.#openQuestions > 0 ? 0 : elapsedMs),
    };
  }
}
