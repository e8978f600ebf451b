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
  /** Without an input, until it is asked to exit: it gives its memory back. */
  readonly idleMs: number;
  /** From being asked to exit until it has. */
  readonly quitMs: number;
}

export const WORKER_TIMEOUTS: WorkerTimeouts = {
  startMs: 60_000,
  restartDelaysMs: [1_000, 2_000, 4_000, 8_000, 16_000, 30_000],
  silenceMs: 600_000,
  abortMs: 1_500,
  idleMs: 60_000,
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

/** One worker process: forked at once, given one input at a time, and killed where it does not keep to its bounds. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #timeouts: WorkerTimeouts;
  readonly #ready = Promise.withResolvers<void>();
  readonly #exited = Promise.withResolvers<void>();
  #isReady = false;
  #exitCause: string | null = null;
  #killedBecause: string | null = null;
  /** The budget that its input exceeded; null where the process was killed for something else. */
  #excess: Excess | null = null;
  #failedToSign = false;
  readonly #budgetWatch: BudgetWatch | null;
  #run: WorkerRun | null = null;
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

  /** Kills the worker. The exit is charged to the input that is in it. */
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
   * True after an input in it could not be signed: it may have flooded the worker's channel to the signer, which the next one
   * would have to wait for, too.
   */
  get failedToSign(): boolean {
    return this.#failedToSign;
  }

  /**
   * Has the worker do an input, as soon as it is ready; to be called when the one before has ended. Never rejects. Resolves with
   * null where the input was not begun, because folders of the worker were replaced: another worker is to run it.
   */
  async run(order: InputOrder, hooks: RunHooks): Promise<RunResult | null> {
    const run = new WorkerRun(this.#nextRun++, hooks);
    const aborted = Promise.withResolvers<void>();
    const abort = () => {
      aborted.resolve();
      if (this.#run === run) this.#abort(run);
    };
    // The signal outlives the input, so what listens to it is taken off again.
    hooks.signal.addEventListener('abort', abort, { once: true });
    try {
      if (!hooks.signal.aborted) await Promise.race([this.ready, aborted.promise]);
      if (hooks.signal.aborted) return { type: 'aborted' };
      const result = await this.#runNow(run, order);
      return hooks.signal.aborted && result?.type !== 'succeeded' ? { type: 'aborted' } : result;
    } finally {
      hooks.signal.removeEventListener('abort', abort);
    }
  }

  async #runNow(run: WorkerRun, order: InputOrder): Promise<RunResult | null> {
    if (this.#exitCause !== null) return this.#endBy(this.#exitCause);
    this.#run = run;
    run.watch(this.#timeouts.silenceMs, () => this.kill('because it gave no sign of progress for too long'));
    this.#budgetWatch?.start(run);
    this.#send({ type: 'run', run: run.id, order });
    return await run.result;
  }

  /** Quits the worker, with an input that is in it. Kills it when it does not exit in time. */
  async quit(): Promise<void> {
    this.#send({ type: 'quit' });
    this.#watch(this.#timeouts.quitMs, 'because it did not exit when asked');
    await this.#exited.promise;
  }

  #abort(run: WorkerRun): void {
    this.#send({ type: 'abort', run: run.id });
    run.watch(this.#timeouts.abortMs, () => this.kill('because it did not stop when asked'));
  }

  #watchBudgets(config: Config): BudgetWatch | null {
    const { pid } = this.#child;
    if (pid === undefined) return null;
    return new BudgetWatch({
      pid,
      budgets: config.worker.budgets,
      exceeded: (excess) => {
        this.#excess = excess;
        this.kill(`because it was over its budget (${excess.budget})`);
      },
    });
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
    const run = this.#run;
    // An input that has ended may still ask for something.
    if (run?.id !== message.run) return;
    run.heard();
    switch (message.type) {
      case 'progress':
        return run.progressed(message);
      case 'reserve-output-path':
        return void this.#answer(message.id, run.ask(run.hooks.reserveOutputPath(message.destination)));
      case 'confirm-lease':
        return void this.#answer(message.id, run.ask(run.hooks.confirmLease()));
      case 'awaits-signature':
        return run.hooks.awaitsSignature();
      case 'not-begun':
        this.#leave(message.state);
        return run.end(null);
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
    this.#leave(state);
    if (result.type === 'failed' && result.error?.reason === 'SIGNATURE_FAILED') this.#failedToSign = true;
    run.hooks.progress({ bytesDone: state.bytesDone, bytesTotal: state.bytesTotal });
    run.end({ ...result, phases: state.phases, calls: state.calls });
  }

  /** Takes note that the input has left the process. */
  #leave(state: WorkerState): void {
    this.#state = state;
    this.#run = null;
    this.#budgetWatch?.stop();
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

  /** Blames the input for an exit for want of memory: the kernel, or the language runtime, may end a process between two samples. */
  #blameForMemory(): void {
    const excess = this.#budgetWatch?.presumedMemoryExcess ?? null;
    if (this.#run !== null && excess !== null) this.#excess = { ...excess, phase: this.#run.usage.phase };
  }

  #recordExit(exitCause: string): void {
    if (this.#exitCause !== null) return;
    clearTimeout(this.#watchdog);
    this.#budgetWatch?.stop();
    this.#exitCause = this.#isReady ? exitCause : `before it was ready, ${exitCause}`;
    this.#ready.resolve();
    this.#exited.resolve();
    this.#run?.end(this.#endBy(this.#exitCause));
    this.#run = null;
  }

  /** Returns how a run ended with the process. */
  #endBy(exitCause: string): RunResult {
    return this.#excess === null
      ? { type: 'process-exited', exitCause, wasReady: this.#isReady }
      : { type: 'over-budget', error: new AppError('INPUT_OVER_BUDGET', this.#excess).toData() };
  }

  /** Ignores that the process is gone: its exit reports that. */
  #send(message: ToWorker): void {
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }
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
