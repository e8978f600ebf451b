import type { CallDurations } from './input-report.ts';

/** Durations kept for each name and input; an object store may be called tens of thousands of times. */
const MAX_CALLS_KEPT = 1000;

/** Measures what a worker calls outside its process, until the next report takes it along. */
export class CallRecorder {
  #durations = new Map<string, number[]>();

  /** Measures a call, whether it succeeds or not. `name` is one of few: it becomes a label. */
  async measure<T>(name: string, call: () => Promise<T>): Promise<T> {
    const startedAtMs = performance.now();
    try {
      return await call();
    } finally {
      this.#add(name, performance.now() - startedAtMs);
    }
  }

  /** Returns the durations since the last call, and forgets them. */
  take(): CallDurations {
    const taken = Object.fromEntries(this.#durations);
    this.#durations = new Map();
    return taken;
  }

  #add(name: string, ms: number): void {
    const durations = this.#durations.get(name) ?? [];
    this.#durations.set(name, durations);
    if (durations.length < MAX_CALLS_KEPT) durations.push(Math.round(ms * 1000) / 1000);
  }
}

/** The calls of this process, whichever of its inputs they are for. */
export const callRecorder = new CallRecorder();
