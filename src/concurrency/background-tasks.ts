import { Semaphore } from './semaphore.ts';

export interface BackgroundLimits {
  /** Tasks that run at once. */
  readonly maxRunning: number;
  /** Tasks that wait before callers have to. */
  readonly maxWaiting: number;
}

/** Runs tasks behind their callers, a bounded number at once and the others in order of arrival. */
export class BackgroundTasks {
  readonly #running: Semaphore;
  readonly #accepted: Semaphore;
  readonly #maxAccepted: number;

  constructor({ maxRunning, maxWaiting }: BackgroundLimits) {
    this.#maxAccepted = maxRunning + maxWaiting;
    this.#running = new Semaphore(maxRunning);
    this.#accepted = new Semaphore(this.#maxAccepted);
  }

  /** Accepts a task, which must never reject. Resolves at once unless too many tasks wait. */
  async start(task: () => Promise<void>): Promise<void> {
    await this.#accepted.acquire();
    void this.#running.run(task).finally(() => this.#accepted.release());
  }

  /** Resolves when every task that was started has settled. */
  async settled(): Promise<void> {
    await this.#accepted.acquire(this.#maxAccepted);
    this.#accepted.release(this.#maxAccepted);
  }
}
