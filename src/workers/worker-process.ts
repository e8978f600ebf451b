import type { Socket } from 'node:net';
import type { Config } from '#config/config.ts';
import { withoutSecrets, writableFolders } from '#config/protected-paths.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { Child, type Exit, MALFORMED } from '#processes/child.ts';
import type { Launcher } from '#processes/launcher.ts';
import { lowerPriority } from '#processes/process-tree.ts';
import type { SignerAccess, Signers } from '#provenance/signers.ts';
import type { IdentityDescription } from '#provenance/signing-identity.ts';
import { NO_STAPLES } from '#provenance/staples.ts';
import { NO_TRUST_LISTS, type TrustSource } from '#provenance/trust-lists.ts';
import { kernelLimitsOf } from './input-budgets.ts';
import type { FromWorker, InputOrder, ToWorker, WorkerAnswer } from './worker-protocol.ts';
import { failedRun, type RunHooks, type RunResult, WorkerRun } from './worker-run.ts';

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

interface WorkerProcessOptions {
  /** The module that calls `runInputWorker`. */
  readonly entry: URL;
  readonly config: Config;
  readonly timeouts: WorkerTimeouts;
  readonly launcher: Launcher;
  /** Sign for the worker; without them it cannot sign. */
  readonly signers: Signers | undefined;
  readonly trust: TrustSource | undefined;
}

/** The state of the sandbox of a process. */
type Sandbox = Pick<Extract<ToWorker, { readonly type: 'start' }>, 'isSandboxed' | 'folderLeftOut'>;

/**
 * An idle worker that holds more memory than this is replaced: what the SDK once took, its process rarely gives back.
 * After the verification of a publication it is some 220 MB, of which threads that end later are 40 MB; a new worker
 * takes 0.3 s.
 */
const MAX_IDLE_RSS_BYTES = 256 * 1024 * 1024;

/** One worker process: given one input at a time, and killed where it does not keep to its bounds. */
export class WorkerProcess {
  readonly #child: Child<ToWorker, WorkerAnswer, FromWorker>;
  readonly #timeouts: WorkerTimeouts;
  readonly #config: Config;
  #signing: SignerAccess | null = null;
  /** The identities that were in force when it was started: its inputs sign with no other ones. */
  #identities: readonly IdentityDescription[] = [];
  /** Resolves when the worker is ready for inputs, or has exited before. */
  readonly #started: Promise<void>;
  #isReady = false;
  #run: WorkerRun | null = null;
  #identity: string | null | undefined;
  /** True when it must not be given another input. */
  #isSpent = false;

  constructor({ entry, config, timeouts, launcher, signers, trust }: WorkerProcessOptions) {
    this.#timeouts = timeouts;
    this.#config = config;
    // Messages go as JSON, Node's default: small ones cost half of what the structured clone costs on each side.
    this.#child = new Child(launcher, entry, {
      execArgv: [YOUNG_GENERATION, OLD_GENERATION],
      // Its own process group, so that what it starts can be ended with it.
      detached: true,
      environment: WORKER_ENVIRONMENT,
      aws: config.input_resolvers.s3 !== undefined || config.output_sinks.s3 !== undefined,
      writable: writableFolders(config),
      limits: kernelLimitsOf(config.worker.budgets),
      pipeCount: signers?.processCount ?? 0,
      onEvent: (message) => this.#take(message),
    });
    const sandbox = { isSandboxed: launcher.hasSandbox, folderLeftOut: launcher.folderLeftOut };
    this.#started = this.#start(sandbox, signers, trust);
    this.#started.catch(() => undefined);
  }

  /** Gives the worker the channel to a new signer process in the place of one, by its number. */
  giveChannel(channel: Socket, signer: number): void {
    this.#child.send({ type: 'signer', signer }, channel);
  }

  /** Gives the worker new trust lists, or new OCSP responses. */
  give(news: Extract<ToWorker, { readonly type: 'trust' | 'staples' }>): void {
    this.#child.send(news);
  }

  /** Kills the worker. The exit is charged to the input that is in it. */
  kill(because: string): void {
    this.#child.kill(because);
  }

  /** Resolves when the process is gone. */
  get exited(): Promise<Exit> {
    return this.#child.exited;
  }

  /** The way in which the process exited; null while it runs. It ends the sentence "the process exited …". */
  get exitCause(): string | null {
    const { exit } = this.#child;
    return exit === null || this.#isReady ? (exit?.cause ?? null) : `before it was ready, ${exit.cause}`;
  }

  /** Tells whether it may take a further input, with the configuration and the identities that are in force now. */
  isFit(config: Config, signers: Signers | undefined): boolean {
    const isCurrent = config === this.#config && (signers === undefined || signers.identities === this.#identities);
    return isCurrent && !this.#isSpent;
  }

  /**
   * Tells whether it may do an input of an identity, null for none. A worker that an input took over signs for those after it: where
   * there are several identities, it gets inputs of one alone.
   */
  isFor(identity: string | null): boolean {
    return this.#identities.length < 2 || this.#identity === undefined || this.#identity === identity;
  }

  /** Calls a function when no input has come for the idle time. */
  whenIdle(then: () => void): void {
    this.#child.whenIdle(this.#timeouts.idleMs, then);
  }

  /**
   * Has the worker do an input, as soon as it is ready; to be called when the one before has ended. Never rejects. Resolves with
   * null where the input was not begun, because folders of the worker were replaced: another worker is to run it.
   */
  async run(order: InputOrder, hooks: RunHooks): Promise<RunResult | null> {
    const run = new WorkerRun(hooks, this.#config.worker.budgets);
    const aborted = Promise.withResolvers<void>();
    const abort = () => {
      aborted.resolve();
      if (this.#run === run) this.#abort();
    };
    // The signal outlives the input, so what listens to it is taken off again.
    hooks.signal.addEventListener('abort', abort, { once: true });
    try {
      if (!hooks.signal.aborted) await Promise.race([this.#started, aborted.promise]);
      if (hooks.signal.aborted) return { type: 'aborted' };
      const result = await this.#runNow(run, order);
      return hooks.signal.aborted && result?.type !== 'succeeded' ? { type: 'aborted' } : result;
    } finally {
      hooks.signal.removeEventListener('abort', abort);
    }
  }

  /** Quits the worker, with an input that is in it. Kills it when it does not exit in time. */
  quit(): Promise<void> {
    return this.#child.quit({ type: 'quit' }, this.#timeouts.quitMs, 'because it did not exit when asked');
  }

  /** The process starts while signers may still do so. Rejects where they cannot: the service ends then. */
  async #start(sandbox: Sandbox, signers?: Signers, trust?: TrustSource): Promise<void> {
    await signers?.started;
    this.#identities = signers?.identities ?? [];
    this.#signing = signers?.attach(this, (index) => this.#child.channel(index)) ?? null;
    const message = {
      type: 'start',
      config: withoutSecrets(this.#config),
      ...sandbox,
      identities: this.#identities,
      trust: (trust?.current ?? NO_TRUST_LISTS).data,
      staples: (signers?.staples?.current ?? NO_STAPLES).data,
    } as const;
    const bounds = { boundMs: this.#timeouts.startMs, because: 'because it did not get ready in time' };
    this.#isReady = (await this.#child.ask(message, bounds)) !== null;
  }

  async #runNow(run: WorkerRun, order: InputOrder): Promise<RunResult | null> {
    if (this.#signing?.allow(order.identity) === false) return this.#withoutIdentity();
    this.#run = run;
    this.#identity = order.identity;
    const answer = await this.#child.ask(
      { type: 'run', order },
      {
        boundMs: this.#timeouts.silenceMs,
        because: 'because it gave no sign of progress for too long',
        overBudget: (usage, elapsedMs) => {
          const excess = run.sampled(usage, elapsedMs);
          if (run.isLong) this.#slow();
          return excess;
        },
      },
    );
    this.#run = null;
    this.#signing?.allow(null);
    try {
      if (answer !== null) return this.#endRun(run, answer);
    } catch {
      this.kill(MALFORMED);
    }
    return this.#endedBy(run, await this.#child.exited);
  }

  /** Fails an input whose identity was removed, or is away, by now. The next worker has the identities that are in force then. */
  #withoutIdentity(): RunResult {
    this.#isSpent = true;
    return failedRun(new AppError('SIGNATURE_FAILED', { problem: 'the identity is not in force on this node' }));
  }

  #abort(): void {
    this.#child.send({ type: 'abort' });
    this.#child.watch(this.#timeouts.abortMs, 'because it did not stop when asked');
  }

  /** Lets others have the cores first, for good. */
  #slow(): void {
    if (this.#isSpent || this.#child.pid === undefined) return;
    this.#isSpent = true;
    lowerPriority(this.#child.pid);
  }

  #take(message: FromWorker): void {
    const run = this.#run;
    // An input that has ended may still ask for something.
    if (run === null) return;
    this.#heard(run);
    switch (message.type) {
      case 'progress':
        return run.progressed(message);
      case 'reserve-output-path':
        return void this.#answer(run, message.id, run.hooks.reserveOutputPath(message.destination));
      case 'confirm-lease':
        return void this.#answer(run, message.id, run.hooks.confirmLease());
      case 'signature':
        return run.hooks.awaitsSignature(message.isAwaited);
    }
  }

  /** Restarts the silence timeout. After an abort the bound counts from the abort, whatever the worker still says. */
  #heard({ hooks }: WorkerRun): void {
    if (!hooks.signal.aborted) this.#child.renewWatch();
  }

  /** Answers a question of the worker. The input is not charged for the time that this takes. */
  async #answer(run: WorkerRun, id: number, answering: Promise<AppErrorData | undefined>): Promise<void> {
    const refusal = await run.answered(answering);
    if (this.#run === run) this.#heard(run);
    this.#child.send({ type: 'answer', id, ...(refusal !== undefined && { refusal }) });
  }

  #endRun({ hooks }: WorkerRun, answer: WorkerAnswer): RunResult | null {
    if (answer.type === 'ready') throw new Error('a worker is ready once');
    const { state, ...result } = answer;
    // Such an input may have flooded the worker's channel to the signer, which the next one would have to wait for, too.
    const failedToSign = result.type === 'failed' && result.error?.reason === 'SIGNATURE_FAILED';
    this.#isSpent ||= failedToSign || state.tainted || state.rssBytes > MAX_IDLE_RSS_BYTES;
    if (result.type === 'not-begun') return null;
    hooks.progress({ bytesDone: state.bytesDone, bytesTotal: state.bytesTotal });
    return { ...result, phases: state.phases, calls: state.calls };
  }

  /** Returns how a run ended with the process. */
  #endedBy(run: WorkerRun, { wasKilled, signal }: Exit): RunResult {
    const isForMemory = !wasKilled && OUT_OF_MEMORY_SIGNALS.has(signal);
    const excess = run.excess ?? (isForMemory ? run.presumedMemoryExcess : null);
    return excess === null
      ? { type: 'process-exited', exitCause: this.exitCause ?? '', wasReady: this.#isReady }
      : failedRun(new AppError('INPUT_OVER_BUDGET', excess));
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
