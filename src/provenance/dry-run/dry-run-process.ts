import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Launcher } from '#processes/launcher.ts';
import { usageOfTree } from '#processes/process-tree.ts';
import type { CheckedAssertions } from './dry-run-manifest.ts';

/** A message from the process: it has started, or has finished a batch. */
export type DryRunMessage = 'ready' | DryRunAnswer;

/** `refusal` is null where the manifest carried the assertions. */
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
export type DryRunOutcome =
  | { readonly kind: 'answered'; readonly refusal: Refusal | null }
  | { readonly kind: 'exceeded'; readonly budget: 'time' | 'memory' }
  /** `how` is an exit code, a signal or an error. */
  | { readonly kind: 'exited'; readonly how: string };

/** Starting takes a quarter of a second, and longer on a busy host. */
const START_TIMEOUT_MS = 60_000;

/** Most batches finish before the first sample of the memory. */
const MEMORY_SAMPLE_INTERVAL_MS = 200;

/** Limits the young generation of the heap to 1 MiB: a batch is finished before more of it pays. */
const YOUNG_GENERATION = '--max-semi-space-size=1';
/** Limits the heap to 512 MiB: requests have at most 8 MiB. The rest of the memory is the SDK's. */
const OLD_GENERATION = '--max-old-space-size=512';

/** Limits enforced by the kernel: they stop a process that grows faster than it is sampled. */
const LIMITS = { openFiles: 256, dataBytes: 2 * 1024 ** 3 };

/** A child process that checks one batch of assertions at a time. */
class DryRunProcess {
  readonly #child: ChildProcess;
  readonly #ready = Promise.withResolvers<void>();
  #outcome: PromiseWithResolvers<DryRunOutcome> | null = null;
  #hasExited = false;

  constructor(entry: URL, launcher: Launcher) {
    this.#child = launcher.launch(entry, {
      serialization: 'advanced',
      execArgv: [YOUNG_GENERATION, OLD_GENERATION],
      writable: [],
      limits: LIMITS,
    });
    // `start` reports the failure.
    this.#ready.promise.catch(() => undefined);
    this.#child.on('message', (message) => this.#take(message as DryRunMessage));
    this.#child.on('error', (error) => this.#exitedWith(error.message));
    this.#child.on('exit', (code, signal) =>
      this.#exitedWith(signal === null ? `exit code ${code}` : `signal ${signal}`),
    );
    this.#keepAlive(false);
  }

  get hasExited(): boolean {
    return this.#hasExited;
  }

  /** The memory of the process in bytes; 0 where the system does not tell. */
  get memoryBytes(): number {
    return usageOfTree(this.#child.pid ?? 0)?.memoryBytes ?? 0;
  }

  /** Waits until the process takes assertions. Throws where it exits before, or takes more than a minute. */
  async start(): Promise<void> {
    this.#keepAlive(true);
    const timer = setTimeout(() => this.#killNow(), START_TIMEOUT_MS);
    try {
      await this.#ready.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Checks assertions in a started process. Kills it when it exceeds a budget. */
  async run(checked: CheckedAssertions, budgets: CheckBudgets): Promise<DryRunOutcome> {
    const outcome = Promise.withResolvers<DryRunOutcome>();
    this.#outcome = outcome;
    const exceed = (budget: 'time' | 'memory'): void => {
      outcome.resolve({ kind: 'exceeded', budget });
      this.#killNow();
    };
    this.#keepAlive(true);
    const timer = setTimeout(() => exceed('time'), budgets.timeMs);
    const sampling = setInterval(() => {
      if (this.memoryBytes > budgets.memoryBytes) exceed('memory');
    }, MEMORY_SAMPLE_INTERVAL_MS);
    if (this.#hasExited) outcome.resolve({ kind: 'exited', how: 'before the batch' });
    // The exit of the process is reported by its event.
    else this.#child.send(checked, () => undefined);
    try {
      return await outcome.promise;
    } finally {
      clearTimeout(timer);
      clearInterval(sampling);
      this.#outcome = null;
      this.#keepAlive(false);
    }
  }

  /** Kills the process and waits for its exit. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined) return;
    this.#child.ref();
    this.#killNow();
    await once(this.#child, 'exit');
  }

  #killNow(): void {
    this.#hasExited = true;
    this.#child.kill('SIGKILL');
  }

  #take(message: DryRunMessage): void {
    if (message === 'ready') this.#ready.resolve();
    else this.#outcome?.resolve({ kind: 'answered', refusal: message.refusal });
  }

  #exitedWith(how: string): void {
    this.#hasExited = true;
    this.#ready.reject(new Error(`the process for dry runs did not start: ${how}`));
    this.#outcome?.resolve({ kind: 'exited', how });
  }

  /** Keeps the service alive while the process is busy, and only then. */
  #keepAlive(isBusy: boolean): void {
    if (isBusy) {
      this.#child.ref();
      this.#child.channel?.ref();
    } else {
      this.#child.unref();
      this.#child.channel?.unref();
    }
  }
}

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
  #process: DryRunProcess | null = null;
  #idleTimer: NodeJS.Timeout | undefined;
  #isBusy = false;

  constructor(options: DryRunWorkerOptions) {
    this.#options = options;
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Checks a batch while no other is checked. Throws where the process does not start. `usedMs` leaves its start out. */
  async run(
    checked: CheckedAssertions,
    budgets: CheckBudgets,
  ): Promise<{ readonly outcome: DryRunOutcome; readonly usedMs: number }> {
    this.#isBusy = true;
    clearTimeout(this.#idleTimer);
    try {
      const process = await this.#started();
      const startMs = performance.now();
      const outcome = await process.run(checked, budgets);
      const usedMs = performance.now() - startMs;
      if (process.memoryBytes > MAX_IDLE_BYTES) await this.#killProcess();
      return { outcome, usedMs };
    } finally {
      this.#isBusy = false;
      this.#idleTimer = setTimeout(() => void this.#killProcess(), this.#options.idleTimeoutMs).unref();
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#idleTimer);
    await this.#killProcess();
  }

  async #started(): Promise<DryRunProcess> {
    const { entry, launcher } = this.#options;
    if (this.#process === null || this.#process.hasExited) this.#process = new DryRunProcess(entry, launcher);
    await this.#process.start();
    return this.#process;
  }

  async #killProcess(): Promise<void> {
    const process = this.#process;
    this.#process = null;
    await process?.kill();
  }
}
