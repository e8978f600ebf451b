import type { Config } from '#config/config.ts';
import type { AppErrorData } from '#errors/app-error.ts';
import type { ByteProgress, InputPhase, InputSize, InputWork, OperationOutcome } from '#operations/operation.ts';
import type { IdentityDescription } from '#provenance/signing-identity.ts';
import type { StapleData } from '#provenance/staples.ts';
import type { TrustListData } from '#provenance/trust-lists.ts';
import type { CallReports } from '#telemetry/run-report.ts';

/** The order to run an input. The JSON is parsed there: it may be megabytes, and the service serves others. */
export interface InputOrder extends Omit<InputWork, 'input' | 'output' | 'params'> {
  readonly inputJson: string;
  readonly outputJson: string;
  readonly paramsJson: string;
  /** True when the worker has to ask before it commits, because the lease may expire. */
  readonly leased: boolean;
  /** True where it writes to the folder of outputs (`output_sinks.local.base_dir`). */
  readonly writesOutputFolder: boolean;
}

/** Messages of the service process to an input worker, in JSON. */
export type ToWorker =
  /** The first request: the configuration without its secrets. A sandbox shows folders as they were when it was made. */
  | {
      readonly type: 'start';
      readonly config: Config;
      readonly isSandboxed: boolean;
      /** A folder that hung when the sandbox was made, and is not in it; null where there is none. */
      readonly folderLeftOut: string | null;
      /** Those that it may be told to sign with; none where there are no signers. */
      readonly identities: readonly IdentityDescription[];
      readonly trust: TrustListData;
      readonly staples: StapleData;
    }
  /** Comes with the channel to a signer process that took the place of another one, by its number. */
  | { readonly type: 'signer'; readonly signer: number }
  /** Trust lists that took the place of others; inputs that run go on with those that they took. */
  | { readonly type: 'trust'; readonly trust: TrustListData }
  /** OCSP responses that took the place of others. */
  | { readonly type: 'staples'; readonly staples: StapleData }
  | { readonly type: 'run'; readonly order: InputOrder }
  /** Stops the input. The answer is still `succeeded` or `failed`, whichever it came to; a worker that takes too long is killed. */
  | { readonly type: 'abort' }
  /** Answers the `reserve-output-path` or `confirm-lease` of the same id; `refusal` is absent where it was granted. */
  | { readonly type: 'answer'; readonly id: number; readonly refusal?: AppErrorData }
  /** Ends the worker when it is idle. */
  | { readonly type: 'quit' };

/** The progress of an input, and the state of its worker after it. */
export interface WorkerState extends ByteProgress {
  /** The phases that the input reached, each with the milliseconds since its start. */
  readonly phases: { readonly [Phase in InputPhase]?: number };
  /** Calls outside the process since the last input. */
  readonly calls: CallReports;
  /** Memory held by the process, in bytes. */
  readonly rssBytes: number;
  /** True where the worker must not be given another input, such as after a native call that cannot be taken back. */
  readonly tainted: boolean;
}

/** The progress of an input that takes long. */
export interface ProgressMessage extends ByteProgress {
  readonly type: 'progress';
  /** The phase that was reached last; `started` before the first. */
  readonly phase: InputPhase | 'started';
  /** The size of the sources opened so far. */
  readonly size: InputSize;
}

/** Questions and news of a worker about the input that it has, in JSON. */
export type FromWorker =
  | ProgressMessage
  | { readonly type: 'reserve-output-path'; readonly id: number; readonly destination: string }
  | { readonly type: 'confirm-lease'; readonly id: number }
  /** A signature or time-stamp is waited for, and takes long; or that has ended, with a signature or without. */
  | { readonly type: 'signature'; readonly isAwaited: boolean };

/** The answer of a worker to `run`. */
export type RunAnswer =
  /** The input was not begun, and is to be given to another worker. */
  | { readonly type: 'not-begun' }
  | { readonly type: 'succeeded'; readonly outcome: OperationOutcome }
  /** `bug` carries the stack of what was no AppError (`error` is null then); it goes to the log and nowhere else. */
  | { readonly type: 'failed'; readonly error: AppErrorData | null; readonly bug?: string };

/** Answers of a worker: to `start` it is `ready`, to `run` one of the others. */
export type WorkerAnswer = { readonly type: 'ready' } | (RunAnswer & { readonly state: WorkerState });
