import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Launcher } from '#processes/launcher.ts';
import { usageOfTree } from '#processes/process-tree.ts';
import type { CheckBudgets, TrialMessage, TrialOutcome } from './assertion-trial-messages.ts';
import type { CustomAssertion } from './manifest-author.ts';

/** Starting takes a quarter of a second, and longer on a busy host. */
const START_TIMEOUT_MS = 60_000;

/** The memory of a process that checks assertions is sampled this often. Most batches end before the first sample. */
const SAMPLE_INTERVAL_MS = 200;

/** Young objects get so little room, in MiB: a trial is over before more of it pays. */
const YOUNG_GENERATION = '--max-semi-space-size=1';
/** Objects of JavaScript, in MiB: requests have at most 8 MiB. The rest of the memory is the SDK's. */
const OLD_GENERATION = '--max-old-space-size=512';

/** What the kernel allows: stops what grows faster than it is sampled. */
const LIMITS = { openFiles: 256, dataBytes: 2 * 1024 ** 3 };

/** A child process that tries assertions out, one batch at a time. */
export class TrialProcess {
  readonly #child: ChildProcess;
  readonly #ready = Promise.withResolvers<void>();
  #outcome: PromiseWithResolvers<TrialOutcome> | null = null;
  #hasEnded = false;

  constructor(entry: URL, launcher: Launcher) {
    this.#child = launcher.launch(entry, {
      serialization: 'advanced',
      execArgv: [YOUNG_GENERATION, OLD_GENERATION],
      writable: [],
      limits: LIMITS,
    });
    // Its failure is told to whoever waits for it.
    this.#ready.promise.catch(() => undefined);
    this.#child.on('message', (message) => this.#take(message as TrialMessage));
    this.#child.on('error', (error) => this.#endedWith(error.message));
    this.#child.on('exit', (code, signal) =>
      this.#endedWith(signal === null ? `exit code ${code}` : `signal ${signal}`),
    );
    this.#keepAlive(false);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The memory that it holds, in bytes; 0 where the system does not tell. */
  get memoryBytes(): number {
    return usageOfTree(this.#child.pid ?? 0)?.memoryBytes ?? 0;
  }

  /** Waits until it can take assertions. Rejects where it does not even start. */
  async start(): Promise<void> {
    this.#keepAlive(true);
    const timer = setTimeout(() => this.#kill(), START_TIMEOUT_MS);
    try {
      await this.#ready.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Tries assertions, once it has started. A process that passes a budget is killed, whatever it is at. */
  async run(assertions: readonly CustomAssertion[], budgets: CheckBudgets): Promise<TrialOutcome> {
    const outcome = Promise.withResolvers<TrialOutcome>();
    this.#outcome = outcome;
    const exceed = (budget: 'time' | 'memory'): void => {
      outcome.resolve({ kind: 'exceeded', budget });
      this.#kill();
    };
    this.#keepAlive(true);
    const timer = setTimeout(() => exceed('time'), budgets.timeMs);
    const sampling = setInterval(() => {
      if (this.memoryBytes > budgets.memoryBytes) exceed('memory');
    }, SAMPLE_INTERVAL_MS);
    if (this.#hasEnded) outcome.resolve({ kind: 'process-ended', how: 'before it was asked' });
    // A process that is gone cannot be told; its exit says so.
    else this.#child.send(assertions, () => undefined);
    try {
      return await outcome.promise;
    } finally {
      clearTimeout(timer);
      clearInterval(sampling);
      this.#outcome = null;
      this.#keepAlive(false);
    }
  }

  /** Ends the process. Nothing is lost with it. */
  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined) return;
    this.#child.ref();
    this.#kill();
    await once(this.#child, 'exit');
  }

  #kill(): void {
    this.#hasEnded = true;
    this.#child.kill('SIGKILL');
  }

  #take(message: TrialMessage): void {
    if (message === 'ready') this.#ready.resolve();
    else this.#outcome?.resolve({ kind: 'answered', refusal: message.refusal });
  }

  #endedWith(how: string): void {
    this.#hasEnded = true;
    this.#ready.reject(new Error(`the process for trials did not start: ${how}`));
    this.#outcome?.resolve({ kind: 'process-ended', how });
  }

  /** An idle process must not keep the service alive, a busy one has somebody waiting. */
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
