import type { AppErrorData } from '#errors/app-error.ts';
import type { OperationOutcome } from '#operations/operation.ts';
import type { ByteProgress } from '../job.ts';
import type { InputUsage } from './input-budgets.ts';
import type { ProgressMessage, WorkerState } from './worker-protocol.ts';

/** The service's side of a running input. */
export interface RunHooks {
  /** Aborted when the input is to stop. */
  readonly signal: AbortSignal;
  progress(progress: ByteProgress): void;
  /** Resolves with undefined when the output path is reserved for the input, otherwise with the refusal. */
  reserveOutputPath(destination: string): Promise<AppErrorData | undefined>;
  /** Resolves with undefined when the worker may publish now, otherwise with the refusal. */
  confirmLease(): Promise<AppErrorData | undefined>;
  /** Called at most once, when the rest of the input is I/O-bound: its worker can start the next one. */
  ioBound?(): void;
}

/** The phases that an input reached, each with the milliseconds since its start. */
type Phases = WorkerState['phases'];
type Calls = WorkerState['calls'];

/** The result of a run. `exitCause` ends the sentence "the process exited …". */
export type RunResult =
  | { readonly type: 'succeeded'; readonly outcome: OperationOutcome; readonly phases: Phases; readonly calls: Calls }
  | {
      readonly type: 'failed';
      readonly error: AppErrorData | null;
      readonly bug?: string;
      readonly phases: Phases;
      readonly calls: Calls;
    }
  | { readonly type: 'process-exited'; readonly exitCause: string; readonly wasReady: boolean }
  /** It used more than its budget, alone in its process, which was killed for it. */
  | { readonly type: 'over-budget'; readonly error: AppErrorData }
  /** The process exited, and another input in it may be the cause; or it could not begin in this worker. It is run again. */
  | { readonly type: 'run-again'; readonly exitCause: string }
  /** It was asked to stop, and has. */
  | { readonly type: 'aborted' };

/** One run of an input in a worker process. */
export class WorkerRun {
  readonly id: number;
  readonly hooks: RunHooks;
  /** Settles when the run has finished. */
  readonly result: Promise<RunResult>;
  /** True once it is I/O-bound for the rest. */
  isIoBound = false;
  /** True when another input was in the process at any time: their resource usage cannot be told apart then. */
  isShared = false;
  #usage: InputUsage = {
    size: { bytes: 0, files: 0 },
    cpuMs: 0,
    readBytes: 0,
    writtenBytes: 0,
    phase: 'started',
    phaseMs: 0,
  };
  /** Questions of the worker that the service has not answered. */
  #openQuestions = 0;
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

  /** The resource usage so far. */
  get usage(): InputUsage {
    return this.#usage;
  }

  /** Charges what the process used while it was at this input. */
  used({ cpuMs, readBytes, writtenBytes }: Pick<InputUsage, 'cpuMs' | 'readBytes' | 'writtenBytes'>): void {
    this.#usage = {
      ...this.#usage,
      cpuMs: this.#usage.cpuMs + cpuMs,
      readBytes: this.#usage.readBytes + readBytes,
      writtenBytes: this.#usage.writtenBytes + writtenBytes,
    };
  }

  /** Charges wall time, unless the worker waits for an answer of the service. */
  waitedMs(elapsedMs: number): void {
    if (this.#openQuestions > 0) return;
    this.#usage = { ...this.#usage, phaseMs: this.#usage.phaseMs + elapsedMs };
  }

  /** Takes note of what the worker said of the input. */
  progressed({ phase, size, bytesDone, bytesTotal }: ProgressMessage): void {
    const phaseMs = phase === this.#usage.phase ? this.#usage.phaseMs : 0;
    this.#usage = { ...this.#usage, phase, phaseMs, size };
    this.hooks.progress({ bytesDone, bytesTotal });
  }

  /** Has the service answer a question of the worker. The input is not charged for the time that this takes. */
  async ask<Answer>(answer: Promise<Answer>): Promise<Answer> {
    this.#openQuestions += 1;
    try {
      return await answer;
    } finally {
      this.#openQuestions -= 1;
      this.heard();
    }
  }

  /** Restarts the watchdog, because the worker sent a message about the input. After an abort the bound counts from the abort, whatever it still says. */
  heard(): void {
    if (!this.hooks.signal.aborted) this.#watchdog?.refresh();
  }

  end(result: RunResult): void {
    clearTimeout(this.#watchdog);
    this.#end(result);
  }
}
