import { statSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { Config } from '#config/config.ts';
import { writableFolders } from '#config/protected-paths.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import type { InputContext, InputPhase, InputSize, InputWork, OperationOutcome } from '#operations/operation.ts';
import { inheritedChannel, serveParent, tellParent } from '#processes/parent.ts';
import type { ProcessLimits } from '#processes/protections.ts';
import { SignerClient } from '#provenance/signer-client.ts';
import { NO_STAPLES, type StapleSource, Staples } from '#provenance/staples.ts';
import { NO_TRUST_LISTS, TrustLists, type TrustSource } from '#provenance/trust-lists.ts';
import { callRecorder } from '#telemetry/run-report.ts';
import { exhaustedBudget, readKernelLimits } from './input-budgets.ts';
import type { FromWorker, InputOrder, RunAnswer, ToWorker, WorkerAnswer } from './worker-protocol.ts';

/** The shortest interval between two reports of progress. */
const PROGRESS_INTERVAL_MS = 100;

/** Runs one input. Rejects with an AppError when the input is at fault, with any other error when the service is. */
type RunInput = (work: InputWork, context: InputContext) => Promise<OperationOutcome>;

/** The worker's services for an input runner. */
export interface WorkerParts {
  taint(): void;
  /** Signs with the keys of the signer processes; null where the worker was started without them. */
  readonly signers: SignerClient | null;
  readonly trust: TrustSource;
  readonly staples: StapleSource;
}

/** The work of a worker process, given by the composition root. */
export interface InputRunner {
  /**
   * Sets up what inputs need. Called once. `taint` may be called later, from within an input: the worker is then replaced
   * after that input.
   */
  start(config: Config, worker: WorkerParts): Promise<RunInput>;
}

/**
 * Runs the main loop of an input worker. The service starts it as a process, and sends it one input after another. The worker
 * leads a process group. When the service exits, for any reason, the worker kills the group, with all programs that it started.
 */
export function runInputWorker(runner: InputRunner): void {
  preferForOutOfMemory();
  const worker = new InputWorker(runner);
  serveParent((message: ToWorker, channel) => worker.take(message, channel), endProcessGroup);
}

/** Of all processes of the service, the kernel kills workers first when memory runs out (0 to 1000). */
const OUT_OF_MEMORY_SCORE = '500';

/**
 * Has the kernel kill this process, and programs that it starts, before the service and the signer. The service cannot: the
 * child that it knows is the program that makes the sandbox, which has started this process by then.
 */
function preferForOutOfMemory(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', OUT_OF_MEMORY_SCORE);
  } catch {
    // This is not Linux: the system chooses by size.
  }
}

/** Kills this process and its group. In a sandbox the group is led from outside, and killing this process kills all others. */
function endProcessGroup(): void {
  try {
    process.kill(-process.pid, 'SIGKILL');
  } catch {
    process.kill(process.pid, 'SIGKILL');
  }
}

class InputWorker {
  readonly #runner: InputRunner;
  readonly #questions = new Map<number, (refusal: AppErrorData | undefined) => void>();
  #run: RunInput | null = null;
  #config: Config | null = null;
  #signers: SignerClient | null = null;
  readonly #trust = { current: NO_TRUST_LISTS };
  readonly #staples = { current: NO_STAPLES };
  #folders = new MountedFolders([], null);
  /** Stops the input that it has, or had last. */
  #abort = new AbortController();
  #nextQuestion = 1;
  #tainted = false;
  readonly #limits = readKernelLimits();

  constructor(runner: InputRunner) {
    this.#runner = runner;
  }

  take(message: ToWorker, channel?: Socket): void {
    switch (message.type) {
      case 'start':
        return void this.#start(message);
      case 'signer':
        return void (channel && this.#signers?.connect(channel, message.signer));
      case 'trust':
        this.#trust.current = new TrustLists(message.trust);
        return;
      case 'staples':
        this.#staples.current = new Staples(message.staples);
        return;
      case 'run':
        return void this.#do(message.order);
      case 'abort':
        return this.#abort.abort(new Error('the input was stopped'));
      case 'answer':
        return this.#questions.get(message.id)?.(message.refusal);
      case 'quit':
        return process.exit(0);
    }
  }

  /**
   * Starts the runner. A rejection makes the process exit: Node writes it to standard error, and the service gets
   * the exit code.
   */
  async #start(message: ToWorker & { type: 'start' }): Promise<void> {
    const { config, isSandboxed, folderLeftOut, identities, trust, staples } = message;
    this.#config = config;
    this.#trust.current = new TrustLists(trust);
    this.#staples.current = new Staples(staples);
    this.#folders = new MountedFolders(isSandboxed ? writableFolders(config) : [], folderLeftOut);
    if (identities.length > 0) {
      this.#signers = new SignerClient(identities);
      this.#signers.connectAll(inheritedChannel);
    }
    this.#run = await this.#runner.start(config, {
      signers: this.#signers,
      trust: this.#trust,
      staples: this.#staples,
      taint: () => {
        this.#tainted = true;
      },
    });
    answer({ type: 'ready' });
  }

  async #do(order: InputOrder): Promise<void> {
    this.#abort = new AbortController();
    const track = new InputTrack();
    try {
      if (this.#folders.haveChanged(this.#foldersLeftAlone(order))) return this.#returnInput(track);
      const outcome = await this.#runInScratch(order, track, this.#abort.signal);
      this.#answer(track, { type: 'succeeded', outcome });
    } catch (error) {
      this.#answer(track, { type: 'failed', ...failureOf(error, track.phase, this.#limits) });
    }
  }

  /** Returns an input to the service, which runs it in a new worker, with the folders that exist now. */
  #returnInput(track: InputTrack): void {
    this.#tainted = true;
    this.#answer(track, { type: 'not-begun' });
  }

  /** An input that writes no output is not held up by a folder of outputs that hangs. */
  #foldersLeftAlone({ writesOutputFolder }: InputOrder): readonly string[] {
    return this.#config === null || writesOutputFolder ? [] : [this.#config.output_sinks.local.base_dir];
  }

  async #runInScratch(order: InputOrder, track: InputTrack, signal: AbortSignal): Promise<OperationOutcome> {
    if (this.#run === null || this.#config === null) throw new Error('an input came before the worker was ready');
    const { data_dir: dataDir, scratch_dir: dir } = this.#config.jobs;
    const scratch = new ScratchSpace({ dir, dataDir }, order, () => track.alive());
    try {
      return await this.#run(workOf(order), this.#contextFor(order, track, scratch, signal));
    } finally {
      // Left files take disk space, but harm no output: the next start of the service removes them.
      await scratch.remove().catch(() => undefined);
    }
  }

  #contextFor(order: InputOrder, track: InputTrack, scratch: ScratchSpace, signal: AbortSignal): InputContext {
    return {
      signal,
      scratch,
      opened: (size) => track.opened(size),
      progress: (bytesDone, bytesTotal) => track.report(bytesDone, bytesTotal),
      reached: (phase) => track.reached(phase),
      reserveOutputPath: async (destination) => {
        await this.#ask(track, (id) => ({ type: 'reserve-output-path', id, destination }));
      },
      confirmLease: async () => {
        if (order.leased) await this.#ask(track, (id) => ({ type: 'confirm-lease', id }));
      },
      awaitSignature: (sign) => awaitSignature(track, sign),
    };
  }

  async #ask(track: InputTrack, question: (id: number) => FromWorker): Promise<void> {
    const id = this.#nextQuestion++;
    const { promise, resolve } = Promise.withResolvers<AppErrorData | undefined>();
    this.#questions.set(id, resolve);
    track.tell(question(id));
    const refusal = await promise;
    this.#questions.delete(id);
    if (refusal !== undefined) throw AppError.fromData(refusal);
  }

  #answer(track: InputTrack, result: RunAnswer): void {
    track.end();
    const { phases, bytesDone, bytesTotal } = track;
    const rssBytes = process.memoryUsage.rss();
    const calls = callRecorder.take();
    answer({ ...result, state: { phases, bytesDone, bytesTotal, calls, rssBytes, tainted: this.#tainted } });
  }
}

/**
 * Remembers the folders that the sandbox mounted. One that was removed and made again outside is read-only in it, and
 * so is one that could not be made before it started.
 */
class MountedFolders {
  readonly #known: ReadonlyMap<string, string>;
  #wasAsked = false;

  /** `leftOut`: a folder that is not in the sandbox because it hung. The first input that writes there waits for it. */
  constructor(folders: readonly string[], leftOut: string | null) {
    this.#known = new Map(folders.map((folder) => [folder, folder === leftOut ? '' : identityOf(folder)]));
  }

  /**
   * Tells whether an input needs a new sandbox: it does not use the folders of `leftAlone`. Never true of the first input for a
   * folder that is still missing.
   */
  haveChanged(leftAlone: readonly string[]): boolean {
    const mayBeMade = this.#wasAsked;
    this.#wasAsked = true;
    return [...this.#known]
      .filter(([folder]) => !leftAlone.includes(folder))
      .some(([folder, identity]) => identityOf(folder) !== identity || (identity === '' && mayBeMade));
  }
}

/** Tells a folder from another one at the same path; empty where there is none. */
function identityOf(folder: string): string {
  const found = statSync(folder, { throwIfNoEntry: false });
  return found === undefined ? '' : `${found.dev}:${found.ino}`;
}

/**
 * Reports the progress of an input. Steps that follow quickly are reported with the result alone: messages between processes
 * are expensive compared with a small file.
 */
class InputTrack {
  readonly phases: { [Phase in InputPhase]?: number } = {};
  bytesDone = 0;
  bytesTotal = 0;
  /** The phase that was reached last; `started` before the first. */
  phase: InputPhase | 'started' = 'started';
  #size: InputSize = { bytes: 0, files: 0 };
  readonly #startedAtMs = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #hasEnded = false;

  /** Tells the service something of the input, unless it has ended: another one may be next. */
  tell(event: FromWorker): void {
    if (!this.#hasEnded) tellParent({ event });
  }

  reached(phase: InputPhase): void {
    this.phases[phase] = Math.round(performance.now() - this.#startedAtMs);
    this.phase = phase;
    this.#sendProgress();
  }

  /** Adds what was opened to the size of the input, which its budgets depend on. */
  opened({ bytes, files }: InputSize): void {
    this.#size = { bytes: this.#size.bytes + bytes, files: this.#size.files + files };
    this.#sendProgress();
  }

  report(bytesDone: number, bytesTotal: number): void {
    this.bytesDone = bytesDone;
    this.bytesTotal = bytesTotal;
    this.#sendSoon();
  }

  /** Reports that the input is being worked on, although its output has not grown. */
  alive(): void {
    this.report(this.bytesDone, this.bytesTotal);
  }

  /** Stops reporting: the result contains the rest. */
  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
  }

  /** Sends progress, at once when the input has run for a while: the next step may block this thread. */
  #sendProgress(): void {
    if (performance.now() - this.#startedAtMs < PROGRESS_INTERVAL_MS) return this.#sendSoon();
    clearTimeout(this.#timer);
    this.#send();
  }

  #sendSoon(): void {
    this.#timer ??= setTimeout(() => this.#send(), PROGRESS_INTERVAL_MS);
  }

  #send(): void {
    this.#timer = undefined;
    const { bytesDone, bytesTotal, phase } = this;
    this.tell({ type: 'progress', bytesDone, bytesTotal, phase, size: this.#size });
  }
}

function workOf({ inputJson, outputJson, paramsJson, ...order }: InputOrder): InputWork {
  return { ...order, input: JSON.parse(inputJson), output: JSON.parse(outputJson), params: JSON.parse(paramsJson) };
}

function failureOf(error: unknown, phase: string, limits: ProcessLimits): { error: AppErrorData | null; bug?: string } {
  const exhausted = exhaustedBudget(error, limits, phase);
  if (exhausted !== null) return { error: new AppError('INPUT_OVER_BUDGET', exhausted).toData() };
  if (error instanceof AppError) return { error: error.toData() };
  return { error: null, bug: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

/** A signature that takes longer than this has the service run another input meanwhile: the key here takes some 2 ms. */
const LONG_SIGNATURE_MS = 25;

/** Waits for a signature, and tells the service where that takes long. */
async function awaitSignature<T>(track: InputTrack, sign: () => Promise<T>): Promise<T> {
  let isLong = false;
  const timer = setTimeout(() => {
    isLong = true;
    track.tell({ type: 'signature', isAwaited: true });
  }, LONG_SIGNATURE_MS);
  try {
    return await sign();
  } finally {
    clearTimeout(timer);
    if (isLong) track.tell({ type: 'signature', isAwaited: false });
  }
}

function answer(answer: WorkerAnswer): void {
  tellParent({ answer });
}
