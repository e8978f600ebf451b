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
  readonly calls: CallReports;
  /** The W3C `traceparent` that the job was submitted with; null where nothing is traced. */
  readonly traceParent: string | null;
}

/** Calls of one name. */
interface CallReport {
  readonly succeeded: number;
  readonly failed: number;
  /** In milliseconds, of the first `MAX_CALLS_KEPT`. */
  readonly durationsMs: readonly number[];
}

/** Calls by the name of what was called. */
export type CallReports = Readonly<Record<string, CallReport>>;

/** The commands of S3 that the service uses. */
const S3_COMMANDS = [
  'AbortMultipartUpload',
  'CompleteMultipartUpload',
  'CreateMultipartUpload',
  'DeleteObjects',
  'GetObject',
  'HeadObject',
  'ListMultipartUploads',
  'ListObjectsV2',
  'PutObject',
  'UploadPart',
  'UploadPartCopy',
];

/** The names of all calls. */
export const KNOWN_CALLS: readonly string[] = ['sign', 'time-stamp', ...S3_COMMANDS.map((name) => `s3 ${name}`)];

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
  #reports = new Map<string, CallReport & { readonly durationsMs: number[] }>();

  /**
   * Measures a call, whether it succeeds or not. `name` is one of few: it becomes a label. An error that `isAnswer` says is an
   * answer, such as that an object is not there, is no failure of the call.
   */
  async measure<T>(name: string, call: () => Promise<T>, isAnswer: (error: unknown) => boolean = never): Promise<T> {
    const startedAtMs = performance.now();
    try {
      const value = await call();
      this.#add(name, true, startedAtMs);
      return value;
    } catch (error) {
      this.#add(name, isAnswer(error), startedAtMs);
      throw error;
    }
  }

  /** Returns the calls since it was asked last, and forgets them. */
  take(): CallReports {
    const taken = Object.fromEntries(this.#reports);
    this.#reports = new Map();
    return taken;
  }

  #add(name: string, isSuccess: boolean, startedAtMs: number): void {
    const { succeeded, failed, durationsMs } = this.#reports.get(name) ?? { succeeded: 0, failed: 0, durationsMs: [] };
    const ms = performance.now() - startedAtMs;
    if (durationsMs.length < MAX_CALLS_KEPT) durationsMs.push(Math.round(ms * 1000) / 1000);
    const counted = isSuccess ? { succeeded: succeeded + 1, failed } : { succeeded, failed: failed + 1 };
    this.#reports.set(name, { ...counted, durationsMs });
  }
}

const never = () => false;

/** The calls of this process, whichever of its inputs they are for. */
export const callRecorder = new CallRecorder();
