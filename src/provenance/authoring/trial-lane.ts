import type { Launcher } from '#processes/launcher.ts';
import type { CheckBudgets, TrialOutcome } from './assertion-trial-messages.ts';
import type { CustomAssertion } from './manifest-author.ts';
import { TrialProcess } from './trial-process.ts';

/** A process that holds more memory after a batch is replaced: neither the SDK nor WASM gives back what it had once. */
const MAX_KEPT_BYTES = 512 * 1024 ** 2;

export interface TrialLaneOptions {
  readonly entry: URL;
  readonly launcher: Launcher;
  readonly idleMs: number;
}

/** Checks batches one after the other in a process that is started by the first and ends when it has been idle. */
export class TrialLane {
  readonly #options: TrialLaneOptions;
  #process: TrialProcess | null = null;
  #idleTimer: NodeJS.Timeout | undefined;
  #isBusy = false;

  constructor(options: TrialLaneOptions) {
    this.#options = options;
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Tries a batch while none is. Rejects where the process does not start. `usedMs` is the time without the start. */
  async run(
    assertions: readonly CustomAssertion[],
    budgets: CheckBudgets,
  ): Promise<{ readonly outcome: TrialOutcome; readonly usedMs: number }> {
    this.#isBusy = true;
    clearTimeout(this.#idleTimer);
    try {
      const process = await this.#started();
      const startMs = performance.now();
      const outcome = await process.run(assertions, budgets);
      const usedMs = performance.now() - startMs;
      if (process.memoryBytes > MAX_KEPT_BYTES) await this.#endProcess();
      return { outcome, usedMs };
    } finally {
      this.#isBusy = false;
      this.#idleTimer = setTimeout(() => void this.#endProcess(), this.#options.idleMs).unref();
    }
  }

  async end(): Promise<void> {
    clearTimeout(this.#idleTimer);
    await this.#endProcess();
  }

  async #started(): Promise<TrialProcess> {
    const { entry, launcher } = this.#options;
    if (this.#process === null || this.#process.hasEnded) this.#process = new TrialProcess(entry, launcher);
    await this.#process.start();
    return this.#process;
  }

  async #endProcess(): Promise<void> {
    const ending = this.#process;
    this.#process = null;
    await ending?.end();
  }
}
