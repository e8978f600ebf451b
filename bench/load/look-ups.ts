import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Looks a job up again and again, until it is told to stop. */
export class LookUps {
  readonly #thread: Worker;

  constructor(base: string, jobId: string) {
    const url = `${base}/v2/jobs/${jobId}`;
    this.#thread = new Worker(new URL('./look-up-thread.ts', import.meta.url), { workerData: url });
  }

  /** Resolves with the milliseconds that each look took. */
  async stop(): Promise<readonly number[]> {
    const told = once(this.#thread, 'message');
    this.#thread.postMessage('stop');
    const [durationsMs] = (await told) as [number[]];
    await this.#thread.terminate();
    return durationsMs;
  }
}

/** The value that a share of all values does not exceed; 0 where there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? 0;
}
