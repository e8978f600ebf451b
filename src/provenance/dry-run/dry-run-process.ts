import { Semaphore } from '#concurrency/semaphore.ts';
import { Child } from '#processes/child.ts';
import type { Launcher } from '#processes/launcher.ts';
import { usageOfTree } from '#processes/process-tree.ts';
import type { CheckedAssertions } from './dry-run-manifest.ts';

/** A request to the process: to start, or to check a batch. */
export type DryRunRequest = 'start' | CheckedAssertions;

/** `refusal` is null where the manifest carried the assertions, and once the process has started. */
export interface DryRunAnswer {
  readonly refusal: Refusal | null;
}

/** Why assertions are refused; `index` is null where no single one of them is at fault. */
export interface Refusal {
  readonly index: number | null;
  readonly problem: string;
}

/** Limits of the checks of a request: the time of the process, and its memory. */
export interface CheckBudgets {
  readonly timeMs: number;
  readonly memoryBytes: number;
}

/** The outcome of a batch: an answer, or the exit of the process, because it exceeded a budget or by itself. */
type DryRunOutcome =
  | { readonly kind: 'answered'; readonly refusal: Refusal | null }
  | { readonly kind: 'exceeded'; readonly budget: 'time' | 'memory' }
  /** `how` says how the process exited. */
  | { readonly kind: 'exited'; readonly how: string };

/** A batch that was checked; `usedMs` leaves the start of the process out. */
export interface DryRun {
  readonly outcome: DryRunOutcome;
  readonly usedMs: number;
}

/** Starting takes a quarter of a second, and longer on a busy host. */
const START = { boundMs: 60_000, because: 'because it did not get ready in time' };

/** Limits the young generation of the heap to 1 MiB: a batch is finished before more of it pays. */
const YOUNG_GENERATION = '--max-semi-space-size=1';
/** Limits the heap to 512 MiB: requests have at most 8 MiB. The rest of the memory is the SDK's. */
const OLD_GENERATION = '--max-old-space-size=512';

/** Limits enforced by the kernel: they stop a process that grows faster than it is sampled. */
const LIMITS = { openFiles: 256, dataBytes: 2 * 1024 ** 3 };

/** A process that holds more memory after a batch is replaced: neither the SDK nor WASM gives memory back. */
const MAX_IDLE_BYTES = 512 * 1024 ** 2;

interface DryRunWorkerOptions {
  readonly entry: URL;
  readonly launcher: Launcher;
  readonly idleTimeoutMs: number;
}

/** Checks one batch after the other in a process that the first one starts, and that is killed when it is idle. */
export class DryRunWorker {
  readonly #options: DryRunWorkerOptions;
  #process: Child<DryRunRequest, DryRunAnswer> | null = null;
  readonly #turn = new Semaphore(1);
  #isOld = false;

  constructor(options: DryRunWorkerOptions) {
    this.#options = options;
  }

  /** Checks a batch in its turn, which is waited for until the signal is aborted. Throws where the process does not start. */
  run(checked: CheckedAssertions, budgets: CheckBudgets, signal: AbortSignal): Promise<DryRun> {
    const task = async () => {
      const process = await this.#started();
      const startMs = performance.now();
      const outcome = await runIn(process, checked, budgets);
      const usedMs = performance.now() - startMs;
      const { memoryBytes = 0 } = usageOfTree(process.pid ?? 0) ?? {};
      if (this.#isOld || memoryBytes > MAX_IDLE_BYTES) process.kill();
      process.whenIdle(this.#options.idleTimeoutMs, () => process.kill());
      return { outcome, usedMs };
    };
    return this.#turn.run(task, 1, signal);
  }

  /** Kills the process as soon as no batch is checked in it. */
  replace(): void {
    this.#isOld = true;
    if (this.#turn.available > 0) this.#process?.kill();
  }

  async close(): Promise<void> {
    this.#process?.kill();
    await this.#process?.exited;
  }

  async #started(): Promise<Child<DryRunRequest, DryRunAnswer>> {
    if (this.#process?.isAlive) return this.#process;
    const { entry, launcher } = this.#options;
    this.#isOld = false;
    this.#process = new Child(launcher, entry, {
      serialization: 'advanced',
      execArgv: [YOUNG_GENERATION, OLD_GENERATION],
      writable: [],
      limits: LIMITS,
    });
    const answer = await this.#process.ask('start', START);
    if (answer === null)
      throw new Error(`the process for dry runs did not start: it exited ${this.#process.exit?.cause}`);
    return this.#process;
  }
}

/** Checks assertions in a started process. Kills it when it exceeds a budget. */
async function runIn(
  process: Child<DryRunRequest, DryRunAnswer>,
  checked: CheckedAssertions,
  { timeMs, memoryBytes }: CheckBudgets,
): Promise<DryRunOutcome> {
  let exceeded: 'time' | 'memory' = 'time';
  const answer = await process.ask(checked, {
    boundMs: timeMs,
    because: 'because it was over its budget (time)',
    overBudget: (usage) => {
      if ((usage?.memoryBytes ?? 0) <= memoryBytes) return null;
      exceeded = 'memory';
      return exceeded;
    },
  });
  if (answer !== null) return { kind: 'answered', refusal: answer.refusal };
  const { exit } = process;
  if (exit?.wasKilled === true) return { kind: 'exceeded', budget: exceeded };
  return { kind: 'exited', how: `it exited ${exit?.cause}` };
}
