/** The report of one run of an input. Its metrics and spans are made from this. */
export interface RunReport {
  readonly jobId: string;
  readonly inputIndex: number;
  readonly attempt: number;
  readonly operation: string;
  /** `stopped`: it will be run again, as its process exited or the service stops. */
  readonly end: 'succeeded' | 'failed' | 'cancelled' | 'stopped';
  /** The catalogue's name of what went wrong. */
  readonly reason?: string;
  /** The budget that it exceeded, where it did. */
  readonly budget?: string;
  /** Milliseconds since 1970. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** The phases that were reached, each with the milliseconds since the start. */
  readonly phases: Readonly<Record<string, number>>;
  /** Output bytes that were written. */
  readonly bytesDone: number;
  /** Calls outside the process, such as of a signer or an object store. */
  readonly calls: CallDurations;
  /** The W3C `traceparent` that the job was submitted with; null where nothing is traced. */
  readonly traceParent: string | null;
}

/** Durations in milliseconds, by the name of what was called. */
export type CallDurations = Readonly<Record<string, readonly number[]>>;

/** The report of a finished job. */
export interface JobReport {
  readonly jobId: string;
  readonly operation: string;
  /** The name of who submitted it; null where no tokens were set. */
  readonly caller: string | null;
  readonly status: 'succeeded' | 'failed';
  readonly inputs: number;
  /** Milliseconds since 1970. */
  readonly queuedAtMs: number;
  readonly finishedAtMs: number;
  readonly traceParent: string | null;
}

/** Returns the phases, each with its own duration: those of the report count from the input's start. */
export function phaseDurations(phases: RunReport['phases']): { readonly phase: string; readonly ms: number }[] {
  let before = 0;
  return Object.entries(phases)
    .sort(([, a], [, b]) => a - b)
    .map(([phase, sinceStartMs]) => {
      const ms = sinceStartMs - before;
      before = sinceStartMs;
      return { phase, ms };
    });
}

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
