import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { type Config, withoutSecrets } from '#config/config.ts';
import { writableFolders } from '#config/protected-paths.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { exitOf, type Launcher } from '#processes/launcher.ts';
import { type SignerProcess, signerChannelOf } from '#provenance/signer-process.ts';
import { NO_TRUST_LISTS, type TrustLists } from '#provenance/trust-lists.ts';
import { type Excess, kernelLimitsOf } from './input-budgets.ts';
import type { FromWorker, InputOrder, ToWorker, WorkerState } from './worker-protocol.ts';
import { BudgetWatch, type RunHooks, type RunResult, WorkerRun } from './worker-run.ts';

/** Timeouts of a worker, in milliseconds. */
export interface WorkerTimeouts {
  /** From its start until it is ready. */
  readonly startMs: number;
  /** Before another one is started for an input instead of one that did not get ready. */
  readonly restartDelaysMs: readonly number[];
  /** Without a word while it has an input. */
  readonly silenceMs: number;
  /** From being asked to stop an input until it answers. */
  readonly abortMs: number;
  /** From being asked to exit until it has. */
  readonly quitMs: number;
}

export const WORKER_TIMEOUTS: WorkerTimeouts = {
  startMs: 60_000,
  restartDelaysMs: [1_000, 2_000, 4_000, 8_000, 16_000, 30_000],
  silenceMs: 600_000,
  abortMs: 1_500,
  quitMs: 2_000,
};

/**
 * Young objects of a worker get 4 MiB before they are collected, not 16. A publication of 20,000 fragments then took
 * 123 MB in its worker, not 215 (PSS, one run each); what it costs in time was lost in the noise.
 */
const YOUNG_GENERATION = '--max-semi-space-size=4';

/**
 * Old objects of a worker are collected when they have grown by half, not when there are up to four times as many: what
 * one publication left behind was still there under the next. Four of 20,000 fragments, one after the other, then took up
 * to 128 MB in their worker, not 194 (PSS); the processor time of 500 small files stayed as it was.
 */
const OLD_GENERATION = '--heap-growing-percent=50';

/** The signer and the trust lists of workers; without a signer they cannot sign. */
interface WorkerTools {
  readonly signer?: SignerProcess;
  readonly trust?: TrustLists;
}

/**
 * One worker process: forked at once, given one input at a time, and the next when that mostly waits; killed where it does
 * not keep to its bounds.
 */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #timeouts: WorkerTimeouts;
  readonly #ready = Promise.withResolvers<void>();
  readonly #exited = Promise.withResolvers<void>();
  #isReady = false;
  #exitCause: string | null = null;
  #killedBecause: string | null = null;
  /** The input that the process was killed for; null where it exited otherwise. */
  #killedFor: WorkerRun | null = null;
  /** The budget that this input exceeded; null where the process was killed for something else. */
  #excess: Excess | null = null;
  /** True when the process was killed for the usage of several inputs together. */
  #isCauseUnknown = false;
  #failedToSign = false;
  readonly #budgetWatch: BudgetWatch | null;
  readonly #runs = new Map<number, WorkerRun>();
  #nextRun = 1;
  #watchdog: NodeJS.Timeout | undefined;
  #state: WorkerState = { phases: {}, bytesDone: 0, bytesTotal: 0, calls: {}, rssBytes: 0, tainted: false };

  constructor(entry: URL, config: Config, timeouts: WorkerTimeouts, launcher: Launcher, tools: WorkerTools) {
    const { signer, trust = NO_TRUST_LISTS } = tools;
    this.#timeouts = timeouts;
    // Messages go as JSON, Node's default: small ones cost half of what the structured clone costs on each side.
    this.#child = launcher.launch(entry, {
      execArgv: [YOUNG_GENERATION, OLD_GENERATION],
      // Its own process group, so that what it starts can be ended with it.
      detached: true,
      environment: WORKER_ENVIRONMENT,
      s3: config.input_resolvers.s3 !== undefined || config.output_sinks.s3 !== undefined,
      writable: writableFolders(config),
      limits: kernelLimitsOf(config.worker.budgets),
      pipeCount: signer === undefined ? 0 : 1,
    });
    this.#child.on('message', (message) => this.#take(message as FromWorker));
    this.#child.on('error', ({ message }) => this.#recordExit(`because of an error (${message})`));
    this.#child.on('exit', (code, signal) => void this.#handleExit(code, signal));
    this.#budgetWatch = this.#watchBudgets(config);
    this.#send({
      type: 'start',
      config: withoutSecrets(config),
      isSandboxed: launcher.hasSandbox,
      ...(signer !== undefined && { identity: signer.identity }),
      trust: trust.data,
    });
    signer?.attach(this, signerChannelOf(this.#child));
    this.#watch(timeouts.startMs, 'because it did not get ready in time');
  }

  /** Gives the worker the channel to a new signer. */
  giveChannel(channel: Socket): void {
    this.#child.send({ type: 'signer' } satisfies ToWorker, channel, undefined, () => channel.destroy());
  }

  /** Gives the worker new trust lists. */
  giveTrust({ data }: TrustLists): void {
    this.#send({ type: 'trust', trust: data });
  }

  /** Kills the worker. An input that was in it alone is charged with that; several are each run again alone. */
  kill(because: string): void {
    this.#killedBecause = because;
    this.#killGroup();
  }

  /** Settles when the worker is ready for inputs, or has exited before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Settles when the process is gone. */
  get exited(): Promise<void> {
    return this.#exited.promise;
  }

  /** The way in which the process exited; null while it runs. It ends the sentence "the process exited …". */
  get exitCause(): string | null {
    return this.#exitCause;
  }

  /** The state of the worker after its last input. */
  get state(): WorkerState {
    return this.#state;
  }

  /** True when it runs at a lower priority, because an input has used much processor time. */
  get isSlowed(): boolean {
    return this.#budgetWatch?.isLowered ?? false;
  }

  /**
   * True after an input in it could not be signed. Another input of this worker may have flooded its channel to the signer,
   * which the next one would have to wait for, too.
   */
  get failedToSign(): boolean {
    return this.#failedToSign;
  }

  /** The number of its inputs that are I/O-bound. */
  get ioBoundCount(): number {
    return [...this.#runs.values()].filter(({ isIoBound }) => isIoBound).length;
  }

  /**
   * Has the worker do an input, as soon as it is ready and, where the input is one to be done alone, empty. Never rejects.
   */
  async run(order: InputOrder, hooks: RunHooks): Promise<RunResult> {
    const run = new WorkerRun(this.#nextRun++, hooks);
    const aborted = Promise.withResolvers<void>();
    const abort = () => {
      aborted.resolve();
      if (this.#runs.has(run.id)) this.#abort(run);
    };
    // The signal outlives the input, so what listens to it is taken off again.
    hooks.signal.addEventListener('abort', abort, { once: true });
    try {
      const free = needsExclusiveWorker(order) ? this.#emptied() : this.ready;
      if (!hooks.signal.aborted) await Promise.race([free, aborted.promise]);
      const result = hooks.signal.aborted ? null : await this.#runNow(run, order);
      return result === null || (hooks.signal.aborted && result.type !== 'succeeded') ? { type: 'aborted' } : result;
    } finally {
      hooks.signal.removeEventListener('abort', abort);
    }
  }

  async #runNow(run: WorkerRun, order: InputOrder): Promise<RunResult> {
    if (this.#exitCause !== null) return this.#endOf(run, [], this.#exitCause);
    this.#runs.set(run.id, run);
    if (this.#runs.size > 1) for (const one of this.#runs.values()) one.hadOtherInputs = true;
    run.watch(this.#timeouts.silenceMs, () =>
      this.#killUnlessShared(run, 'because it gave no sign of progress for too long'),
    );
    this.#budgetWatch?.start();
    this.#send({ type: 'run', run: run.id, order });
    return await run.result;
  }

  /** Quits the worker when all its inputs have finished. It must not be given more. */
  async retire(): Promise<void> {
    await this.#emptied();
    await this.quit();
  }

  /** Settles when the worker is ready, or has exited, and all inputs in it have. */
  async #emptied(): Promise<void> {
    await this.ready;
    for (const run of this.#runs.values()) await run.result;
  }

  /** Quits the worker with its inputs. Kills it when it does not exit in time. */
  async quit(): Promise<void> {
    this.#send({ type: 'quit' });
    this.#watch(this.#timeouts.quitMs, 'because it did not exit when asked');
    await this.#exited.promise;
  }

  #abort(run: WorkerRun): void {
    this.#send({ type: 'abort', run: run.id });
    run.watch(this.#timeouts.abortMs, () => this.#killFor(run, 'because it did not stop when asked'));
  }

  #watchBudgets(config: Config): BudgetWatch | null {
    const { pid } = this.#child;
    if (pid === undefined) return null;
    return new BudgetWatch({
      pid,
      budgets: config.worker.budgets,
      runs: () => [...this.#runs.values()],
      exceeded: (run, excess) => {
        if (!run.hadOtherInputs) this.#excess = excess;
        this.#killUnlessShared(run, `because it was over its budget (${excess.budget})`);
      },
    });
  }

  /** Kills the process for an input; where others were in it, none is blamed, and each is run again alone. */
  #killUnlessShared(run: WorkerRun, because: string): void {
    this.#isCauseUnknown = run.hadOtherInputs;
    this.#killFor(run, because);
  }

  #killFor(run: WorkerRun, because: string): void {
    this.#killedFor = run;
    this.#killedBecause = because;
    this.#killGroup();
  }

  /** Kills the process after a while, unless the watch is renewed or ended. */
  #watch(boundMs: number, because: string): void {
    clearTimeout(this.#watchdog);
    if (this.#exitCause !== null) return;
    this.#watchdog = setTimeout(() => this.kill(because), boundMs);
  }

  /** Kills the worker and every program that it started. */
  #killGroup(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // Nothing of the group is left.
    }
  }

  #take(message: FromWorker): void {
    if (message.type === 'ready') return this.#becomeReady();
    const run = this.#runs.get(message.run);
    if (run === undefined) return;
    run.heard();
    switch (message.type) {
      case 'progress':
        return run.progressed(message);
      case 'reserve-output-path':
        return void this.#answer(message.id, run.ask(run.hooks.reserveOutputPath(message.destination)));
      case 'confirm-lease':
        return void this.#answer(message.id, run.ask(run.hooks.confirmLease()));
      case 'io-bound':
        run.isIoBound = true;
        this.#state = { ...this.#state, rssBytes: message.rssBytes };
        return run.hooks.ioBound?.();
      case 'run-again':
        this.#state = message.state;
        this.#runs.delete(run.id);
        return run.end({ type: 'run-again', exitCause: 'because its folders were replaced' });
      case 'succeeded':
      case 'failed':
        return this.#endRun(run, message);
    }
  }

  #becomeReady(): void {
    clearTimeout(this.#watchdog);
    this.#isReady = true;
    this.#ready.resolve();
  }

  async #answer(id: number, answering: Promise<AppErrorData | undefined>): Promise<void> {
    const refusal = await answering;
    this.#send({ type: 'answer', id, ...(refusal !== undefined && { refusal }) });
  }

  #endRun(run: WorkerRun, { state, ...result }: FromWorker & { type: 'succeeded' | 'failed' }): void {
    this.#state = state;
    if (result.type === 'failed' && result.error?.reason === 'SIGNATURE_FAILED') this.#failedToSign = true;
    this.#runs.delete(run.id);
    if (this.#runs.size === 0) this.#budgetWatch?.stop();
    run.hooks.progress({ bytesDone: state.bytesDone, bytesTotal: state.bytesTotal });
    if (isOverBudget(result) && run.hadOtherInputs)
      return run.end({ type: 'run-again', exitCause: 'with no memory left, or no file left to open' });
    run.end({ ...result, phases: state.phases, calls: state.calls });
  }

  /** Waits for the last messages of the worker, which may still lie in the channel when its exit is seen. */
  async #handleExit(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    this.#killGroup();
    if (this.#child.connected) await once(this.#child, 'disconnect');
    const end = exitOf(code, signal);
    if (this.#killedBecause === null && OUT_OF_MEMORY_SIGNALS.has(end.signal)) this.#blameForMemory();
    const exitCause = end.signal !== null ? `by the signal ${end.signal}` : `with the exit code ${end.code}`;
    this.#recordExit(this.#killedBecause ?? exitCause);
  }

  /**
   * Blames the only input for an exit for want of memory: the kernel, or the language runtime, may end a process
   * between two samples.
   */
  #blameForMemory(): void {
    const [run, ...others] = this.#runs.values();
    const excess = this.#budgetWatch?.presumedMemoryExcess ?? null;
    if (run === undefined || others.length > 0 || run.hadOtherInputs || excess === null) return;
    this.#killedFor = run;
    this.#excess = { ...excess, phase: run.usage.phase };
  }

  #recordExit(exitCause: string): void {
    if (this.#exitCause !== null) return;
    clearTimeout(this.#watchdog);
    this.#budgetWatch?.stop();
    this.#exitCause = this.#isReady ? exitCause : `before it was ready, ${exitCause}`;
    this.#ready.resolve();
    this.#exited.resolve();
    const runs = [...this.#runs.values()];
    this.#runs.clear();
    for (const run of runs) run.end(this.#endOf(run, runs, this.#exitCause));
  }

  /**
   * Returns how a run ended with the process. To blame are one that was in the process alone, and that which it was
   * killed for. Where there were several, nobody can tell which: each is run again alone.
   */
  #endOf(run: WorkerRun, all: readonly WorkerRun[], exitCause: string): RunResult {
    if (this.#isCauseUnknown) return { type: 'run-again', exitCause };
    if (run === this.#killedFor && this.#excess !== null) {
      return { type: 'over-budget', error: new AppError('INPUT_OVER_BUDGET', this.#excess).toData() };
    }
    const isToBlame = this.#killedFor === null ? all.length === 1 || !this.#isReady : run === this.#killedFor;
    return isToBlame
      ? { type: 'process-exited', exitCause, wasReady: this.#isReady }
      : { type: 'run-again', exitCause };
  }

  /** Ignores that the process is gone: its exit reports that. */
  #send(message: ToWorker): void {
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }
}

/** Returns true for an input that is retried: it may have crashed a process with others in it. */
export function needsExclusiveWorker({ attempt }: InputOrder): boolean {
  return attempt > 1;
}

/**
 * Threads of a worker share two heaps of the C library, not one each: memory that one gave back is used by all. A
 * publication of 20,000 fragments then took 176 MB in its worker, not 221 (RSS, one run each).
 */
const ALLOCATION_ARENAS = '2';

/**
 * Threads that read, write and sync for a worker: as many as the files of a folder that become durable at once, and some
 * to go on reading and writing meanwhile. With four, Node's default, syncs took them all.
 */
const POOL_THREADS = '24';

const WORKER_ENVIRONMENT = {
  MALLOC_ARENA_MAX: ALLOCATION_ARENAS,
  UV_THREADPOOL_SIZE: POOL_THREADS,
};

/** The kernel kills a process where memory ran out; V8 and native code abort where none is granted. */
const OUT_OF_MEMORY_SIGNALS: ReadonlySet<NodeJS.Signals | null> = new Set(['SIGKILL', 'SIGABRT', 'SIGTRAP'] as const);

function isOverBudget(result: { readonly type: string; readonly error?: AppErrorData | null }): boolean {
  return result.error?.reason === 'INPUT_OVER_BUDGET';
}
