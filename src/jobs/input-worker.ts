import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { Config } from '#config/config.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import type { InputContext, InputOutcome, InputPhase, InputWork } from '#operations/operation.ts';
import { callRecorder } from '#telemetry/call-recorder.ts';
import type { FromWorker, InputOrder, ToWorker, WorkerState } from './worker-protocol.ts';

/** Progress is reported at most so often. */
const PROGRESS_INTERVAL_MS = 100;

/** Does one input. Rejects with an AppError where the input is at fault, with anything else where the service is. */
export type RunInput = (work: InputWork, context: InputContext) => Promise<InputOutcome>;

/** What a worker process does; the composition root gives it. */
export interface InputRunner {
  /**
   * Sets up whatever inputs need, once. `taint` may be called later, from within an input: the worker is then
   * replaced after that input.
   */
  start(config: Config, worker: { taint(): void }): Promise<RunInput>;
}

/**
 * The main loop of an input worker: a process that was forked by the service and does one input after another. It leads
 * a process group, and ends at once when the service does, in whatever way, with all programs that it started. Signals
 * are left to the service, which ends its workers itself.
 */
export function runInputWorker(runner: InputRunner): void {
  process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  const worker = new InputWorker(runner);
  process.on('message', (message: ToWorker) => worker.take(message));
}

class InputWorker {
  readonly #runner: InputRunner;
  readonly #claims = new Map<number, (refusal: AppErrorData | undefined) => void>();
  #run: RunInput | null = null;
  #config: Config | null = null;
  #abort = new AbortController();
  #nextClaim = 1;
  #tainted = false;

  constructor(runner: InputRunner) {
    this.#runner = runner;
  }

  take(message: ToWorker): void {
    switch (message.type) {
      case 'start':
        return void this.#start(message.config);
      case 'run':
        return void this.#do(message.order);
      case 'abort':
        return this.#abort.abort(new Error('the input was stopped'));
      case 'claim-answer':
        return this.#claims.get(message.id)?.(message.refusal);
      case 'quit':
        return process.exit(0);
    }
  }

  /** A rejection ends the process: Node writes it to standard error, and the service learns the exit code. */
  async #start(config: Config): Promise<void> {
    this.#config = config;
    this.#run = await this.#runner.start(config, {
      taint: () => {
        this.#tainted = true;
      },
    });
    send({ type: 'ready' });
  }

  async #do(order: InputOrder): Promise<void> {
    this.#abort = new AbortController();
    const track = new InputTrack();
    try {
      const outcome = await this.#runInScratch(order, track);
      send({ type: 'succeeded', outcome, state: this.#state(track) });
    } catch (error) {
      send({ type: 'failed', ...failureOf(error), state: this.#state(track) });
    } finally {
      track.end();
      this.#claims.clear();
    }
  }

  async #runInScratch(order: InputOrder, track: InputTrack): Promise<InputOutcome> {
    if (this.#run === null || this.#config === null) throw new Error('an input came before the worker was ready');
    const { data_dir: dataDir, scratch_dir: dir } = this.#config.jobs;
    const scratch = new ScratchSpace({ dir, dataDir }, order, () => track.alive());
    try {
      return await this.#run(workOf(order), this.#contextFor(order, track, scratch));
    } finally {
      // What cannot be removed takes room, but harms no output: the next start of the service removes it.
      await scratch.remove().catch(() => undefined);
    }
  }

  #contextFor(order: InputOrder, track: InputTrack, scratch: ScratchSpace): InputContext {
    return {
      signal: this.#abort.signal,
      scratch,
      progress: (bytesDone, bytesTotal) => track.report(bytesDone, bytesTotal),
      reached: (phase) => track.reached(phase),
      claimDestination: (destination) => this.#ask((id) => ({ type: 'claim', id, destination })),
      mayDeliver: async () => {
        if (order.leased) await this.#ask((id) => ({ type: 'may-deliver', id }));
      },
    };
  }

  async #ask(question: (id: number) => FromWorker): Promise<void> {
    const id = this.#nextClaim++;
    const { promise, resolve } = Promise.withResolvers<AppErrorData | undefined>();
    this.#claims.set(id, resolve);
    send(question(id));
    const refusal = await promise;
    this.#claims.delete(id);
    if (refusal !== undefined) throw AppError.fromData(refusal);
  }

  #state({ phases, bytesDone, bytesTotal }: InputTrack): WorkerState {
    const tainted = this.#tainted;
    return { phases, bytesDone, bytesTotal, calls: callRecorder.take(), rssBytes: process.memoryUsage.rss(), tainted };
  }
}

/**
 * How far an input is. What is quick is told with its result alone: messages between processes are dear beside a small
 * file.
 */
class InputTrack {
  readonly phases: { [Phase in InputPhase]?: number } = {};
  bytesDone = 0;
  bytesTotal = 0;
  readonly #startedAtMs = performance.now();
  #timer: NodeJS.Timeout | undefined;

  reached(phase: InputPhase): void {
    this.phases[phase] = Math.round(performance.now() - this.#startedAtMs);
  }

  report(bytesDone: number, bytesTotal: number): void {
    this.bytesDone = bytesDone;
    this.bytesTotal = bytesTotal;
    this.#timer ??= setTimeout(() => this.#send(), PROGRESS_INTERVAL_MS);
  }

  /** Says that the input is being worked on, though no more of its output is there. */
  alive(): void {
    this.report(this.bytesDone, this.bytesTotal);
  }

  /** The result tells the rest. */
  end(): void {
    clearTimeout(this.#timer);
  }

  #send(): void {
    this.#timer = undefined;
    send({ type: 'progress', bytesDone: this.bytesDone, bytesTotal: this.bytesTotal });
  }
}

function workOf({ inputJson, outputJson, paramsJson, leased: _, ...order }: InputOrder): InputWork {
  return { ...order, input: JSON.parse(inputJson), output: JSON.parse(outputJson), params: JSON.parse(paramsJson) };
}

function failureOf(error: unknown): { error: AppErrorData | null; bug?: string } {
  if (error instanceof AppError) return { error: error.toData() };
  return { error: null, bug: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

/** A service that is gone cannot be told; `disconnect` ends the worker. */
function send(message: FromWorker): void {
  process.send?.(message, undefined, undefined, () => undefined);
}
