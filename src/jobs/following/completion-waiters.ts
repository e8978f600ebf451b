/** Called when the job of a waiter is finished. */
type Notify = () => void;

/**
 * Lets callers wait until jobs are finished. Jobs that finish in this process are reported by `finished`; for jobs that finish
 * elsewhere the store is polled, once in an interval for all waiters together.
 */
export class CompletionWaiters {
  readonly #waiting = new Map<string, Set<Notify>>();
  readonly #finishedAmong: (jobIds: readonly string[]) => Promise<readonly string[]>;
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(finishedAmong: (jobIds: readonly string[]) => Promise<readonly string[]>, intervalMs: number) {
    this.#finishedAmong = finishedAmong;
    this.#intervalMs = intervalMs;
  }

  /** Resolves with true when the job is finished, with false after the timeout. Rejects when the signal is aborted. */
  wait(jobId: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const finish = (complete: () => void) => {
        this.#remove(jobId, notify);
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        complete();
      };
      const notify = () => finish(() => resolve(true));
      const abort = () => finish(() => reject(signal.reason));
      const timer = setTimeout(() => finish(() => resolve(false)), timeoutMs);
      signal.addEventListener('abort', abort, { once: true });
      this.#add(jobId, notify);
    });
  }

  /** Notifies the waiters of a job. */
  finished(jobId: string): void {
    for (const notify of [...(this.#waiting.get(jobId) ?? [])]) notify();
  }

  #add(jobId: string, notify: Notify): void {
    this.#waiting.set(jobId, (this.#waiting.get(jobId) ?? new Set()).add(notify));
    this.#timer ??= setTimeout(() => void this.#poll(), this.#intervalMs).unref();
  }

  #remove(jobId: string, notify: Notify): void {
    const waiters = this.#waiting.get(jobId);
    waiters?.delete(notify);
    if (waiters?.size === 0) this.#waiting.delete(jobId);
  }

  async #poll(): Promise<void> {
    const jobIds = [...this.#waiting.keys()];
    // A store that cannot be reached is polled again in the next interval.
    const finished = jobIds.length === 0 ? [] : await this.#finishedAmong(jobIds).catch(() => []);
    for (const jobId of finished) this.finished(jobId);
    this.#timer = undefined;
    if (this.#waiting.size > 0) this.#timer = setTimeout(() => void this.#poll(), this.#intervalMs).unref();
  }
}
