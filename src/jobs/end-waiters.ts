/** A waiter that is told when its job ends. */
type Tell = () => void;

/**
 * Those who wait for jobs to end. They are told by whoever ends the job; only what ended elsewhere is found by asking
 * the store, once in an interval for all of them together.
 */
export class EndWaiters {
  readonly #waiting = new Map<string, Set<Tell>>();
  readonly #endedAmong: (jobIds: readonly string[]) => Promise<readonly string[]>;
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(endedAmong: (jobIds: readonly string[]) => Promise<readonly string[]>, intervalMs: number) {
    this.#endedAmong = endedAmong;
    this.#intervalMs = intervalMs;
  }

  /** Resolves with true when the job ends, with false when the time is over or nobody will be told any more. */
  wait(jobId: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        this.#remove(jobId, tell);
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        settle();
      };
      const tell = () => finish(() => resolve(true));
      const abort = () => finish(() => reject(signal.reason));
      const timer = setTimeout(() => finish(() => resolve(false)), timeoutMs);
      signal.addEventListener('abort', abort, { once: true });
      this.#add(jobId, tell);
    });
  }

  /** Tells those who wait for a job. */
  ended(jobId: string): void {
    for (const tell of [...(this.#waiting.get(jobId) ?? [])]) tell();
  }

  #add(jobId: string, tell: Tell): void {
    this.#waiting.set(jobId, (this.#waiting.get(jobId) ?? new Set()).add(tell));
    this.#timer ??= setTimeout(() => void this.#ask(), this.#intervalMs).unref();
  }

  #remove(jobId: string, tell: Tell): void {
    const tells = this.#waiting.get(jobId);
    tells?.delete(tell);
    if (tells?.size === 0) this.#waiting.delete(jobId);
  }

  async #ask(): Promise<void> {
    const jobIds = [...this.#waiting.keys()];
    // A store that cannot be reached is asked again in the next interval.
    const ended = jobIds.length === 0 ? [] : await this.#endedAmong(jobIds).catch(() => []);
    for (const jobId of ended) this.ended(jobId);
    this.#timer = undefined;
    if (this.#waiting.size > 0) this.#timer = setTimeout(() => void this.#ask(), this.#intervalMs).unref();
  }
}
