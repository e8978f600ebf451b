import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Launcher } from '#processes/launcher.ts';
import type { TrialAnswer, TrialMessage } from './assertion-trial-messages.ts';
import type { CustomAssertion } from './manifest-author.ts';

/** A trial takes milliseconds, and a few seconds where there are thousands of assertions. */
const LONGEST_TRIAL_MS = 60_000;

/** Young objects get so little room, in MiB: a trial is over before more of it pays. */
const YOUNG_GENERATION = '--max-semi-space-size=1';

/** A child process that tries assertions out, one request at a time. */
export class TrialProcess {
  readonly #child: ChildProcess;
  #isReady = false;
  #trial: PromiseWithResolvers<TrialAnswer> | null = null;
  #hasEnded = false;

  constructor(entry: URL, launcher: Launcher) {
    const options = { serialization: 'advanced', execArgv: [YOUNG_GENERATION], writable: [] } as const;
    this.#child = launcher.launch(entry, options);
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

  /**
   * Tries assertions. What ends the process, or keeps it busy without end, is refused: that it does so on trial is
   * reason enough not to sign it. Rejects where the process does not even start.
   */
  async run(assertions: readonly CustomAssertion[]): Promise<TrialAnswer> {
    this.#trial = Promise.withResolvers<TrialAnswer>();
    this.#keepAlive(true);
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), LONGEST_TRIAL_MS);
    // A process that is gone cannot be told; its exit says so.
    this.#child.send(assertions, () => undefined);
    try {
      return await this.#trial.promise;
    } finally {
      clearTimeout(timer);
      this.#trial = null;
      this.#keepAlive(false);
    }
  }

  /** Ends the process. Nothing is lost with it. */
  async end(): Promise<void> {
    if (this.#hasEnded) return;
    this.#child.ref();
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }

  #take(message: TrialMessage): void {
    if (message === 'ready') this.#isReady = true;
    else this.#trial?.resolve(message);
  }

  #endedWith(how: string): void {
    this.#hasEnded = true;
    if (!this.#isReady) this.#trial?.reject(new Error(`the process for trials did not start: ${how}`));
    else this.#trial?.resolve({ refusal: { index: null, problem: `the C2PA SDK did not survive them (${how})` } });
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
