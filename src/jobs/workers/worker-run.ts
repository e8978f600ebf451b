import type { AppErrorData } from '#errors/app-error.ts';
import type { InputOutcome } from '#operations/operation.ts';
import type { ByteProgress } from '../job.ts';
import type { WorkerState } from './worker-protocol.ts';

/** What the service does for an input while it runs. */
export interface RunHooks {
  /** Aborted when the input is to stop. */
  readonly signal: AbortSignal;
  progress(progress: ByteProgress): void;
  /** Answers a claim of a destination; undefined where it is granted. */
  claim(destination: string): Promise<AppErrorData | undefined>;
  /** Whether the worker may deliver now; undefined where it may. */
  mayDeliver(): Promise<AppErrorData | undefined>;
  /** Told when the input mostly waits from here on, at most once: its worker is free for the next one. */
  settling?(): void;
}

/** The phases that an input reached, each with the milliseconds since its start. */
type Phases = WorkerState['phases'];
type Calls = WorkerState['calls'];

/** How the run of an input ended. `how` ends the sentence "the process ended …". */
export type RunResult =
  | { readonly type: 'succeeded'; readonly outcome: InputOutcome; readonly phases: Phases; readonly calls: Calls }
  | {
      readonly type: 'failed';
      readonly error: AppErrorData | null;
      readonly bug?: string;
      readonly phases: Phases;
      readonly calls: Calls;
    }
  | { readonly type: 'process-ended'; readonly how: string; readonly wasReady: boolean }
  /** The process ended, and another input that was in it may be the reason. */
  | { readonly type: 'displaced'; readonly how: string }
  /** It was asked to stop, and has. */
  | { readonly type: 'aborted' };

/** One run of an input in a worker process. */
export class WorkerRun {
  readonly id: number;
  readonly hooks: RunHooks;
  /** Settles when the run has ended. */
  readonly result: Promise<RunResult>;
  /** Whether it mostly waits from here on. */
  settling = false;
  readonly #end: (result: RunResult) => void;
  #watchdog: NodeJS.Timeout | undefined;

  constructor(id: number, hooks: RunHooks) {
    const { promise, resolve } = Promise.withResolvers<RunResult>();
    this.id = id;
    this.hooks = hooks;
    this.result = promise;
    this.#end = resolve;
  }

  /** Does something after a while, unless the worker is heard of before, the watch is renewed, or the run ends. */
  watch(boundMs: number, late: () => void): void {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(late, boundMs);
  }

  /** The worker said something of the input. After an abort the bound counts from the abort, whatever it still says. */
  heard(): void {
    if (!this.hooks.signal.aborted) this.#watchdog?.refresh();
  }

  end(result: RunResult): void {
    clearTimeout(this.#watchdog);
    this.#end(result);
  }
}
