import { lowerPriority, type TreeUsage, usageOfTree } from '#processes/process-tree.ts';
import { type Budgets, type Excess, excessOf } from './input-budgets.ts';
import type { WorkerRun } from './worker-run.ts';

/** The process tree of a worker that has an input is sampled this often. */
const SAMPLE_INTERVAL_MS = 250;

/** A sample counts as no more time than this: while the service itself is held up, the worker may be, too. */
const MAX_SAMPLE_MS = 1_000;

/** A worker whose input has used this much processor time lets others have the cores first. */
const LOWER_PRIORITY_AFTER_CPU_MS = 15_000;

export interface BudgetWatchOptions {
  readonly pid: number;
  readonly budgets: Budgets;
  /** The inputs that are in the worker now. */
  readonly runs: () => readonly WorkerRun[];
  /** Called at most once for each sample. */
  readonly exceeded: (run: WorkerRun, excess: Excess) => void;
}

/**
 * Holds the inputs of one worker to their budgets, by sampling its process tree from outside: nothing depends on the
 * worker answering, whose main thread may be in an endless loop.
 *
 * Charges the usage of the process to its active input, or to all of its inputs while all of them are I/O-bound. That
 * is exact for an input that is alone in its worker; where there are several, the worker is killed and nobody is blamed.
 */
export class BudgetWatch {
  readonly #options: BudgetWatchOptions;
  readonly #sampled = new WeakSet<WorkerRun>();
  #timer: NodeJS.Timeout | undefined;
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

  /** To be called when an input begins. Small files end before the first sample. */
  start(): void {
    this.#timer ??= setInterval(() => this.#sample(), SAMPLE_INTERVAL_MS);
  }

  /** To be called when the worker has no input any more. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #sample(): void {
    const { pid, budgets, exceeded } = this.#options;
    const runs = this.#options.runs();
    const nowMs = performance.now();
    const before = this.#last;
    const elapsedMs = Math.min(nowMs - this.#lastAtMs, MAX_SAMPLE_MS);
    this.#lastAtMs = nowMs;
    this.#last = usageOfTree(pid) ?? before;
    this.#charge(runs, before, elapsedMs);
    for (const run of runs) {
      const excess = excessOf(budgets, run.usage, this.#last);
      if (excess !== null) return exceeded(run, excess);
    }
    if (runs.some(({ usage }) => usage.cpuMs > LOWER_PRIORITY_AFTER_CPU_MS)) this.#lower();
  }

  /** An input is charged from its second sample on: what was used before its first may have been another's. */
  #charge(runs: readonly WorkerRun[], before: TreeUsage | null, elapsedMs: number): void {
    const working = runs.filter(({ isIoBound }) => !isIoBound);
    const charged = working.length > 0 ? working : runs;
    for (const run of runs) {
      const isFirst = !this.#sampled.has(run);
      this.#sampled.add(run);
      if (isFirst || before === null || this.#last === null) continue;
      run.waitedMs(elapsedMs);
      if (!charged.includes(run)) continue;
      // A descendant that is orphaned takes what it used out of the sum.
      run.used({
        cpuMs: Math.max(this.#last.cpuMs - before.cpuMs, 0),
        readBytes: Math.max(this.#last.readBytes - before.readBytes, 0),
        writtenBytes: Math.max(this.#last.writtenBytes - before.writtenBytes, 0),
      });
    }
  }

  #lower(): void {
    if (this.#isLowered) return;
    this.#isLowered = true;
    lowerPriority(this.#options.pid);
  }
}
