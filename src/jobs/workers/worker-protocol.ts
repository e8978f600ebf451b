import type { Config } from '#config/config.ts';
import type { AppErrorData } from '#errors/app-error.ts';
import type { InputOutcome, InputPhase, InputSize, OperationName } from '#operations/operation.ts';
import type { IdentityDescription } from '#provenance/identity/signing-identity.ts';
import type { CallDurations } from '#telemetry/input-report.ts';

/** What an input worker is given to do. The JSON is parsed there: it may be megabytes, and the service serves others. */
export interface InputOrder {
  readonly jobId: string;
  readonly inputIndex: number;
  readonly attempt: number;
  readonly operation: OperationName;
  readonly inputJson: string;
  readonly outputJson: string;
  readonly paramsJson: string;
  /** Whether the worker has to ask before it delivers: the input is its node's only for as long as a lease. */
  readonly leased: boolean;
  /** A folder that files may be written into without claiming them: messages between processes are dear. */
  readonly openFolder?: string;
}

/**
 * What the service process says to an input worker, in JSON. `run` counts the runs of a worker. It is at one input at a
 * time, beside some that mostly wait.
 */
export type ToWorker =
  /** The first message: the configuration without its secrets. A sandbox shows folders as they were when it was made. */
  | {
      readonly type: 'start';
      readonly config: Config;
      readonly isSandboxed: boolean;
      readonly identity?: IdentityDescription;
    }
  /** Comes with the channel to a signer that took the place of another one. */
  | { readonly type: 'signer' }
  | { readonly type: 'run'; readonly run: number; readonly order: InputOrder }
  /** The answer is still `succeeded` or `failed`, whichever it came to; a worker that takes too long is killed. */
  | { readonly type: 'abort'; readonly run: number }
  /** Answers the `claim` or `may-deliver` of the same id; `refusal` is absent where it was granted. */
  | { readonly type: 'claim-answer'; readonly id: number; readonly refusal?: AppErrorData }
  /** Ends the worker when it is idle. */
  | { readonly type: 'quit' };

/** How far an input came in a worker, and how the worker is after it. */
export interface WorkerState {
  /** The phases that the input reached, each with the milliseconds since its start. */
  readonly phases: { readonly [Phase in InputPhase]?: number };
  /** Output bytes that were written, and that there are. */
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** What was called outside the process since the last input ended. */
  readonly calls: CallDurations;
  /** Memory held by the process, in bytes. */
  readonly rssBytes: number;
  /** True where the worker must not be given another input, such as after a native call that cannot be taken back. */
  readonly tainted: boolean;
}

/** How far an input is, told while it takes long. */
export interface ProgressMessage {
  readonly type: 'progress';
  readonly run: number;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** The phase that was reached last; `started` before the first. */
  readonly phase: InputPhase | 'started';
  /** What was opened for the input so far. */
  readonly size: InputSize;
}

/** What an input worker says to the service process, in JSON. */
export type FromWorker =
  | { readonly type: 'ready' }
  | ProgressMessage
  | { readonly type: 'claim'; readonly run: number; readonly id: number; readonly destination: string }
  | { readonly type: 'may-deliver'; readonly run: number; readonly id: number }
  /** The input mostly waits from here on: the worker may be given the next one. */
  | { readonly type: 'settling'; readonly run: number; readonly rssBytes: number }
  /** The input was not begun, and is to be given to another worker. */
  | { readonly type: 'displaced'; readonly run: number; readonly state: WorkerState }
  | { readonly type: 'succeeded'; readonly run: number; readonly outcome: InputOutcome; readonly state: WorkerState }
  /** `bug` carries the stack of what was no AppError (`error` is null then); it goes to the log and nowhere else. */
  | {
      readonly type: 'failed';
      readonly run: number;
      readonly error: AppErrorData | null;
      readonly bug?: string;
      readonly state: WorkerState;
    };
