import type { AppErrorData } from '#errors/app-error.ts';
import type { OperationOutcome } from '#operations/operation.ts';
import { lowerPriority, type TreeUsage, usageOfTree } from '#processes/process-tree.ts';
import type { ByteProgress } from '../job.ts';
import { type Budgets, type Excess, excessOf, type InputUsage } from './input-budgets.ts';
import type { ProgressMessage, WorkerState } from './worker-protocol.ts';

/** The service's side of a running input. */
export interface RunHooks {
  /** Aborted when the input is to stop. */
  readonly signal: AbortSignal;
  progress(progress: ByteProgress): void;
  /** Resolves with undefined when the output path is reserved for the input, otherwise with the refusal. */
  reserveOutputPath(destination: string): Promise<AppErrorData | undefined>;
  /** Resolves with undefined when the worker may commit now, otherwise with the refusal. */
  confirmLease(): Promise<AppErrorData | undefined>;
  /** Called when a signature or time-stamp is waited for, and takes long: another input can run meanwhile. */
  awaitsSignature(): void;
}

/** The phases that an input reached, each with the milliseconds since its start. */
type Phases = WorkerState['phases'];
type Calls = WorkerState['calls'];

/** The result of a run. `exitCause` ends the sentence "the process exited …". */
export type RunResult =
  | { readonly type: 'succeeded'; readonly outcome: OperationOutcome; readonly phases: Phases; readonly calls: Calls }
  | {
      readonly type: 'failed';
      readonly error: AppErrorData | null;
      readonly bug?: string;
      readonly phases: Phases;
      readonly calls: Calls;
    }
  | { readonly type: 'process-exited'; readonly exitCause: string; readonly wasReady: boolean }
  /** It used more than its budget, and its process was killed for it. */
  | { readonly type: 'over-budget'; readonly error: AppErrorData }
  /** It was asked to stop, and has. */
  | { readonly type: 'aborted' };

/** One run of an input in a worker process. */
export class WorkerRun {
  readonly id: number;
  readonly hooks: RunHooks;
  /** Settles when the run has finished; with null where it was not begun, and another worker is to run it. */
  readonly result: Promise<RunResult | null>;
  #usage: InputUsage = {
    size: { bytes: 0, files: 0 },
    cpuMs: 0,
    readBytes: 0,
    writtenBytes: 0,
    phase: 'started',
    phaseMs: 0,
  };
  /** Questions of the worker that the service has not answered. */
  #openQuestions = 0;
  readonly #end: (result: RunResult | null) => void;
  #watchdog: NodeJS.Timeout | undefined;

  constructor(id: number, hooks: RunHooks) {
    const { promise, resolve } = Promise.withResolvers<RunResult | null>();
    this.id = id;
    this.hooks = hooks;
    this.result = promise;
    this.#end = resolve;
  }

  /** Does something after a while, unless the worker is heard of before, the watch is renewed, or the run ends. */
  watch(boundMs: number, late: () => void): void {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(late, boundMs);
  }

  /** The resource usage so far. */
  get usage(): InputUsage {
    return this.#usage;
  }

  /** Charges what the process used while it was at this input. */
  used({ cpuMs, readBytes, writtenBytes }: Pick<InputUsage, 'cpuMs' | 'readBytes' | 'writtenBytes'>): void {
    this.#usage = {
      ...this.#usage,
      cpuMs: this.#usage.cpuMs + cpuMs,
      readBytes: this.#usage.readBytes + readBytes,
      writtenBytes: this.#usage.writtenBytes + writtenBytes,
    };
  }

  /** Charges wall time, unless the worker waits for an answer of the service. */
  waitedMs(elapsedMs: number): void {
    if (this.#openQuestions > 0) return;
    this.#usage = { ...this.#usage, phaseMs: this.#usage.phaseMs + elapsedMs };
  }

  /** Takes note of what the worker said of the input. */
  progressed({ phase, size, bytesDone, bytesTotal }: ProgressMessage): void {
    const phaseMs = phase === this.#usage.phase ? this.#usage.phaseMs : 0;
    this.#usage = { ...this.#usage, phase, phaseMs, size };
    this.hooks.progress({ bytesDone, bytesTotal });
  }

  /** Has the service answer a question of the worker. The input is not charged for the time that this takes. */
  async ask<Answer>(answer: Promise<Answer>): Promise<Answer> {
    this.#openQuestions += 1;
    try {
      return await answer;
    } finally {
      this.#openQuestions -= 1;
      this.heard();
    }
  }

  /**
   * Restarts the watchdog, because the worker sent a message about the input. After an abort the bound counts from the
   * abort, whatever it still says.
   */
  heard(): void {
    if (!this.hooks.signal.aborted) this.#watchdog?.refresh();
  }

  end(result: RunResult | null): void {
    clearTimeout(this.#watchdog);
    this.#end(result);
  }
}

/** The process tree of a worker that has an input is sampled this often. */
const SAMPLE_INTERVAL_MS = 250;

/** A sample counts as no more time than this: while the service itself is held up, the worker may be, too. */
const MAX_SAMPLE_MS = 1_000;

/** A worker whose input has used this much processor time lets others have the cores first. */
const LOWER_PRIORITY_AFTER_CPU_MS = 15_000;

interface BudgetWatchOptions {
  readonly pid: number;
  readonly budgets: Budgets;
  /** Called at most once for each sample. */
  readonly exceeded: (excess: Excess) => void;
}

/**
 * Holds the inputs of one worker to their budgets, by sampling its process tree from outside: nothing depends on the
 * worker answering, whose main thread may be in an endless loop.
 */
export class BudgetWatch {
  readonly #options: BudgetWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  /** The last sample of the input that runs. */
  #last: TreeUsage | null = null;
  #lastAtMs = 0;
  #isLowered = false;

  constructor(options: BudgetWatchOptions) {
    this.#options = options;
  }

  /**
   * The excess of a process that was killed for lack of memory: at the last sample it held at least half of its limit,
   * which it can pass before the next one. Null where it held less.
   */
  get presumedMemoryExcess(): Omit<Excess, 'phase'> | null {
    const used = this.#last?.memoryBytes ?? 0;
    const limit = this.#options.budgets.memory_bytes;
    return used < limit / 2 ? null : { budget: 'memory', unit: 'bytes', limit, used };
  }

  /** True once the worker has a lower priority, which it keeps. */
  get isLowered(): boolean {
    return this.#isLowered;
  }

  /** Samples while an input runs. Small files end before the first sample. */
  start(run: WorkerRun): void {
    this.stop();
    this.#last = null;
    this.#timer = setInterval(() => this.#sample(run), SAMPLE_INTERVAL_MS);
  }

  /** Stops sampling. To be called when the input has ended. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #sample(run: WorkerRun): void {
    const { pid, budgets, exceeded } = this.#options;
    const nowMs = performance.now();
    const before = this.#last;
    const elapsedMs = Math.min(nowMs - this.#lastAtMs, MAX_SAMPLE_MS);
    this.#lastAtMs = nowMs;
    this.#last = usageOfTree(pid) ?? before;
    if (before !== null && this.#last !== null) charge(run, before, this.#last, elapsedMs);
    const excess = excessOf(budgets, run.usage, this.#last);
    if (excess !== null) return exceeded(excess);
    if (run.usage.cpuMs > LOWER_PRIORITY_AFTER_CPU_MS) this.#lower();
  }

  #lower(): void {
    if (this.#isLowered) return;
    this.#isLowered = true;
    lowerPriority(this.#options.pid);
  }
}

/** Charges an input from its second sample on: some of what was used before the first was of the input before it. */
function charge(run: WorkerRun, before: TreeUsage, now: TreeUsage, elapsedMs: number): void {
  run.waitedMs(elapsedMs);
  // A descendant that is orphaned takes what it used out of the sum.
  run.used({
    cpuMs: Math.max(now.cpuMs - before.cpuMs, 0),
    readBytes: Math.max(now.readBytes - before.readBytes, 0),
    writtenBytes: Math.max(now.writtenBytes - before.writtenBytes, 0),
  });
}
