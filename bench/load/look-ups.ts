import { setTimeout as sleep } from 'node:timers/promises';

/** Look-ups under way at once, and the pause of each between two: what a few dozen polling clients ask for. */
const LOOKING = 4;
const PAUSE_MS = 5;

/** Looks a job up again and again, until it is told to stop; returns the milliseconds that each look took. */
export class LookUps {
  readonly #url: string;
  readonly #stop = new AbortController();
  readonly #looking: Promise<unknown>;
  readonly #ms: number[] = [];

  constructor(base: string, jobId: string) {
    this.#url = `${base}/v2/jobs/${jobId}`;
    this.#looking = Promise.all(Array.from({ length: LOOKING }, () => this.#look()));
  }

  async stop(): Promise<readonly number[]> {
    this.#stop.abort();
    await this.#looking;
    return this.#ms;
  }

  async #look(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const startedAt = performance.now();
      const reply = await fetch(this.#url);
      await reply.arrayBuffer();
      if (reply.status !== 200) throw new Error(`a look-up was answered ${reply.status}`);
      this.#ms.push(performance.now() - startedAt);
      await sleep(PAUSE_MS);
    }
  }
}

/** The value that a share of all values does not exceed; 0 where there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? 0;
}
