import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '#config/config.ts';
import { Launcher } from '#processes/launcher.ts';
import type { Signers } from '#provenance/signers.ts';
import type { TrustStore } from '#provenance/trust-store.ts';
import type { Log } from '#telemetry/logger.ts';
import { WORKER_TIMEOUTS, WorkerProcess, type WorkerTimeouts } from './worker-process.ts';
import type { InputOrder } from './worker-protocol.ts';
import type { RunHooks, RunResult } from './worker-run.ts';

export interface WorkerPoolOptions {
  /** The module that calls `runInputWorker`. */
  readonly entry: URL;
  /** Given to workers until another one is used. */
  readonly config: Config;
  readonly maxWorkers: number;
  readonly log: Log;
  /** Starts worker processes; without any protection unless given. */
  readonly launcher?: Launcher;
  /** Sign for workers; without them they cannot sign. */
  readonly signer?: Signers;
  /** Trust lists of workers, which get new ones as they come. */
  readonly trust?: TrustStore;
  readonly timeouts?: Partial<WorkerTimeouts>;
  /** Called where a worker exits by itself, or cannot be started. */
  readonly crashed?: () => void;
}

/**
 * The processes that inputs are done in, one input at a time. They are started when they are needed, and stay for the next
 * input of their identity until they were idle for a minute; one that has grown, is tainted, could not sign, has old identities or
 * has exited is replaced.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #timeouts: WorkerTimeouts;
  readonly #all = new Set<WorkerProcess>();
  /** Idle workers. The last one in is the first one out: its memory is still in the caches. */
  readonly #idle = new Set<WorkerProcess>();
  #config: Config;
  /** Inputs that run. */
  #active = 0;
  /** Asked to exit, and still running. */
  readonly #retiring = new Set<WorkerProcess>();

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#timeouts = { ...WORKER_TIMEOUTS, ...options.timeouts };
    options.trust?.onChange((lists) => {
      for (const worker of this.#all) worker.give({ type: 'trust', trust: lists.data });
    });
    options.signer?.staples?.onChange((staples) => {
      for (const worker of this.#all) worker.give({ type: 'staples', staples: staples.data });
    });
  }

  /** The number of worker processes. */
  get size(): number {
    return this.#all.size;
  }

  /** Gives workers a configuration and the identities in force from now on. Inputs that run finish with the old ones. */
  useConfig(config: Config): void {
    this.#config = config;
    for (const worker of this.#idle) this.#retire(worker);
    this.#idle.clear();
  }

  /** Starts a worker ahead of the first input, unless there is one. */
  prestart(): void {
    if (this.#all.size > 0) return;
    const worker = this.#start();
    if (worker instanceof WorkerProcess) this.#keep(worker);
  }

  /**
   * Does an input in a worker, or in another one where it did not get ready: no input is to blame for a host without free
   * processes, files or memory, so the input is charged only after the last of `restartDelaysMs`. Never rejects. Where
   * more than `maxWorkers` inputs run at once, a further worker is started for each.
   */
  async run(order: InputOrder, hooks: RunHooks): Promise<RunResult> {
    const delaysMs = this.#timeouts.restartDelaysMs.values();
    while (!hooks.signal.aborted) {
      this.#active += 1;
      const result = await this.#runIn(this.#takeIdle(order) ?? (await this.#startWhenPermitted(order)), order, hooks);
      if (result === null) continue;
      if (result.type === 'process-exited') this.#options.crashed?.();
      if (result.type !== 'process-exited' || result.wasReady) return result;
      const { value: delayMs } = delaysMs.next();
      if (delayMs === undefined) return result;
      this.#options.log.error({ exit_cause: result.exitCause, pause_ms: delayMs }, 'an input worker did not get ready');
      await sleep(delayMs, undefined, { signal: hooks.signal }).catch(() => undefined);
    }
    return { type: 'aborted' };
  }

  async #runIn(worker: WorkerProcess | Error, order: InputOrder, hooks: RunHooks): Promise<RunResult | null> {
    if (worker instanceof Error) {
      this.#active -= 1;
      return { type: 'process-exited', exitCause: `before it began (${worker.message})`, wasReady: false };
    }
    const result = await worker.run(order, hooks);
    this.#active -= 1;
    if (worker.exitCause !== null) return result;
    if (worker.isFit(this.#config, this.#options.signer)) this.#keep(worker);
    else this.#retire(worker);
    return result;
  }

  /** Quits all workers, with the inputs that still run. */
  async close(): Promise<void> {
    this.#idle.clear();
    await Promise.all([...this.#all].map((worker) => worker.quit()));
  }

  /**
   * Starts a worker as soon as the limit permits: one that was asked to exit may still hold its memory, and exits
   * within a bound. Returns one that gets idle while the folders are looked at.
   */
  async #startWhenPermitted(order: InputOrder): Promise<WorkerProcess | Error> {
    await this.#options.launcher?.lookAtFolders();
    const idle = this.#takeIdle(order);
    if (idle !== undefined) return idle;
    while (this.#all.size >= this.#limit) {
      this.#retireOneOfOthers();
      assert(this.#retiring.size > 0, 'an input is run only where a worker is free for it');
      await Promise.race([...this.#retiring].map((worker) => worker.exited));
    }
    return this.#start();
  }

  /** Starts a worker. Returns the error where the system gives no process, such as for want of memory. */
  #start(): WorkerProcess | Error {
    const { entry, log, launcher = new Launcher(), signer: signers, trust } = this.#options;
    const [config, timeouts] = [this.#config, this.#timeouts];
    try {
      const parts = { entry, config, timeouts, launcher, signers, trust };
      return this.#watch(new WorkerProcess(parts));
    } catch (error) {
      log.error({ err: error, exit_cause: (error as Error).message }, 'an input worker could not be started');
      return error as Error;
    }
  }

  #watch(worker: WorkerProcess): WorkerProcess {
    this.#all.add(worker);
    void worker.exited.then(() => {
      this.#all.delete(worker);
      this.#retiring.delete(worker);
      if (!this.#idle.delete(worker)) return;
      this.#options.crashed?.();
      this.#options.log.warn({ exit_cause: worker.exitCause }, 'an idle input worker exited');
    });
    return worker;
  }

  /** Keeps a worker for the next input, for a while. */
  #keep(worker: WorkerProcess): void {
    this.#idle.add(worker);
    worker.whenIdle(() => this.#idle.delete(worker) && this.#retire(worker));
  }

  #takeIdle({ identity }: InputOrder): WorkerProcess | undefined {
    const worker = [...this.#idle].filter((one) => one.isFor(identity)).at(-1);
    if (worker !== undefined) this.#idle.delete(worker);
    return worker;
  }

  /**
   * The bound on workers now, beside those that were asked to exit. Where there are several identities, as many again may be idle:
   * inputs of two identities by turns would otherwise start a worker each.
   */
  get #limit(): number {
    const { maxWorkers, signer } = this.#options;
    const hasSeveral = signer !== undefined && signer.identities.length > 1;
    return Math.max(maxWorkers, this.#active) + (hasSeveral ? maxWorkers : 0);
  }

  /** Makes room for a worker where all others are idle, and for inputs of other identities. */
  #retireOneOfOthers(): void {
    const [longest] = this.#idle;
    if (this.#retiring.size > 0 || longest === undefined) return;
    this.#idle.delete(longest);
    this.#retire(longest);
  }

  #retire(worker: WorkerProcess): void {
    this.#retiring.add(worker);
    void worker.quit();
  }
}
