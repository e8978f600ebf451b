import type { Config } from '#config/config.ts';
import type { AppErrorData } from '#errors/app-error.ts';
import type { InputOutcome, InputPhase, InputWork } from '#operations/operation.ts';

/** What the service process says to an input worker. One input runs in a worker at a time. */
export type ToWorker =
  /** The first message: the whole configuration, as `loadConfig` returned it. */
  | { readonly type: 'start'; readonly config: Config }
  | { readonly type: 'run'; readonly work: InputWork }
  | { readonly type: 'abort' }
  /** Answers `claim`; `refusal` is absent where it was granted. */
  | { readonly type: 'claim-answer'; readonly refusal?: AppErrorData }
  /** Ends the worker when it is idle. */
  | { readonly type: 'quit' };

/** What an input worker says to the service process. */
export type FromWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'progress'; readonly bytesDone: number; readonly bytesTotal: number }
  | { readonly type: 'phase'; readonly phase: InputPhase }
  | { readonly type: 'claim'; readonly destination: string }
  | { readonly type: 'succeeded'; readonly outcome: InputOutcome; readonly rssBytes: number }
  /** `bug` carries the stack of what was no AppError; the caller sees `INTERNAL_ERROR` and the job's id only. */
  | { readonly type: 'failed'; readonly error: AppErrorData | null; readonly bug?: string; readonly rssBytes: number };
