import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '#config/config.ts';
import { Launcher } from '#processes/launcher.ts';
import type { SignerProcess } from '#provenance/signer-process.ts';
import type { TrustStore } from '#provenance/trust-store.ts';
import type { Log } from '#telemetry/logger.ts';
import { needsExclusiveWorker, WORKER_TIMEOUTS, WorkerProcess, type WorkerTimeouts } from './worker-process.ts';
import type { InputOrder } from './worker-protocol.ts';
import type { RunHooks, RunResult } from './worker-run.ts';

/**
 * An idle worker that holds more memory than this is replaced: what the SDK once took, its process rarely gives back.
 * After the verification of a publication it is some 220 MB, of which threads that end later are 40 MB; a new worker
 * takes 0.3 s.
 */
const MAX_IDLE_RSS_BYTES = 256 * 1024 * 1024;

/**
 * I/O-bound inputs of one worker, beside the active one: as many as syncs overlap. 500 files of 64 kB took
 * 0.86 s with 16, 0.93 s with 8 and 0.95 s with 4, because more of them share the sync of their folder.
 */
const MAX_IO_BOUND_INPUTS = 16;

export interface WorkerPoolOptions {
  /** The module that calls `runInputWorker`. */
  readonly entry: URL;
  /** Given to every worker. */
  readonly config: Config;
  readonly maxWorkers: number;
  readonly log: Log;
  /** Starts worker processes; without any protection unless given. */
  readonly launcher?: Launcher;
  /** Signs for workers; without it they cannot sign. */
  readonly signer?: SignerProcess;
  /** Trust lists of workers, which get new ones as they come. */
  readonly trust?: TrustStore;
  readonly timeouts?: Partial<WorkerTimeouts>;
  readonly maxIdleRssBytes?: number;
}

/**
 * The processes that inputs are done in. They are started when they are needed, up to the bound, and stay for the
 * next input; one that has grown, is tainted, could not sign or has exited is replaced.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #timeouts: WorkerTimeouts;
  readonly #maxIdleRssBytes: number;
  readonly #all = new Set<WorkerProcess>();
  /** The last one in is the first one out: its memory is still in the caches. */
  readonly #idle: WorkerProcess[] = [];
  /** Runs whose worker is not free for another one. */
  #active = 0;
  /** Asked to exit, and still running. */
  readonly #retiring = new Set<WorkerProcess>();

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#timeouts = { ...WORKER_TIMEOUTS, ...options.timeouts };
    this.#maxIdleRssBytes = options.maxIdleRssBytes ?? MAX_IDLE_RSS_BYTES;
    options.trust?.onChange((lists) => {
      for (const worker of this.#all) worker.giveTrust(lists);
    });
  }

  /** The number of worker processes. */
  get size(): number {
    return this.#all.size;
  }

  /** Starts a worker ahead of the first input. */
  prestart(): void {
    const worker = this.#start();
    if (worker instanceof WorkerProcess) this.#idle.push(worker);
  }

  /**
   * Does an input in a worker, or in another one where it did not get ready: no input is to blame for a host without free
   * processes, files or memory, so the input is charged only after the last of `restartDelaysMs`. Never rejects. Where
   * more than `maxWorkers` inputs run at once, beside those whose `ioBound` hook was called, an extra worker is started
   * for each; it exits after the first input that finishes then.
   */
  async run(order: InputOrder, hooks: RunHooks): Promise<RunResult> {
    const delaysMs = this.#timeouts.restartDelaysMs.values();
    while (!hooks.signal.aborted) {
      this.#active += 1;
      const result = await this.#runIn(this.#idle.pop() ?? (await this.#startWhenPermitted()), order, hooks);
      if (result.type !== 'process-exited' || result.wasReady) return result;
      const { value: delayMs } = delaysMs.next();
      if (delayMs === undefined) return result;
      this.#options.log.error({ exit_cause: result.exitCause, pause_ms: delayMs }, 'an input worker did not get ready');
      await sleep(delayMs, undefined, { signal: hooks.signal }).catch(() => undefined);
    }
    return { type: 'aborted' };
  }

  async #runIn(worker: WorkerProcess | Error, order: InputOrder, hooks: RunHooks): Promise<RunResult> {
    if (worker instanceof Error) {
      this.#active -= 1;
      return { type: 'process-exited', exitCause: `before it began (${worker.message})`, wasReady: false };
    }
    const { ioBound: mayStartNext, ...others } = hooks;
    let isFree = false;
    const ioBound = () => {
      if (worker.ioBoundCount > MAX_IO_BOUND_INPUTS || this.#isWornOut(worker)) return;
      isFree = true;
      this.#active -= 1;
      this.#idle.push(worker);
      mayStartNext?.();
    };
    const mayOverlap = mayStartNext !== undefined && !needsExclusiveWorker(order);
    const result = await worker.run(order, mayOverlap ? { ...others, ioBound } : others);
    if (!isFree) {
      this.#active -= 1;
      this.#keepOrReplace(worker);
    } else if (this.#isToRetire(worker) && this.#takeFromIdle(worker)) this.#retire(worker);
    return result;
  }

  /** Quits all workers, with the inputs that still run. */
  async close(): Promise<void> {
    this.#idle.length = 0;
    await Promise.all([...this.#all].map((worker) => worker.quit()));
  }

  /**
   * Starts a worker as soon as the limit permits: one that was asked to exit may still hold its memory, and exits
   * within a bound.
   */
  async #startWhenPermitted(): Promise<WorkerProcess | Error> {
    while (this.#all.size >= this.#limit) {
      assert(this.#retiring.size > 0, 'an input is run only where a worker is free for it');
      await Promise.race([...this.#retiring].map((worker) => worker.exited));
    }
    return this.#start();
  }

  /** Starts a worker. Returns the error where the system gives no process, such as for want of memory. */
  #start(): WorkerProcess | Error {
    const { entry, config, log, launcher = new Launcher(), signer, trust } = this.#options;
    const tools = { ...(signer && { signer }), ...(trust && { trust: trust.current }) };
    try {
      return this.#watch(new WorkerProcess(entry, config, this.#timeouts, launcher, tools));
    } catch (error) {
      log.error({ err: error }, 'an input worker could not be started');
      return error as Error;
    }
  }

  #watch(worker: WorkerProcess): WorkerProcess {
    this.#all.add(worker);
    void worker.exited.then(() => {
      this.#all.delete(worker);
      this.#retiring.delete(worker);
      if (this.#takeFromIdle(worker))
        this.#options.log.warn({ exit_cause: worker.exitCause }, 'an idle input worker exited');
    });
    return worker;
  }

  /** Returns true when it was idle. */
  #takeFromIdle(worker: WorkerProcess): boolean {
    const index = this.#idle.indexOf(worker);
    if (index >= 0) this.#idle.splice(index, 1);
    return index >= 0;
  }

  #keepOrReplace(worker: WorkerProcess): void {
    if (worker.exitCause !== null) return;
    if (this.#isToRetire(worker)) this.#retire(worker);
    else this.#idle.push(worker);
  }

  /** True for a worker that is not to be given another input: there are too many, or it is worn out. */
  #isToRetire(worker: WorkerProcess): boolean {
    return this.#all.size - this.#retiring.size > this.#limit || this.#isWornOut(worker);
  }

  /** The bound on workers now, beside those that were asked to exit. */
  get #limit(): number {
    return Math.max(this.#options.maxWorkers, this.#active);
  }

  #isWornOut({ isSlowed, failedToSign, state: { rssBytes, tainted } }: WorkerProcess): boolean {
    return isSlowed || failedToSign || tainted || rssBytes > this.#maxIdleRssBytes;
  }

  #retire(worker: WorkerProcess): void {
    this.#retiring.add(worker);
    void worker.retire();
  }
}
