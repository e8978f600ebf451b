import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '#config/config.ts';
import { Launcher } from '#processes/launcher.ts';
import type { SignerProcess } from '#provenance/identity/signer-process.ts';
import type { Log } from '../log.ts';
import { isDoneAlone, WORKER_BOUNDS, type WorkerBounds, WorkerProcess } from './worker-process.ts';
import type { InputOrder } from './worker-protocol.ts';
import type { RunHooks, RunResult } from './worker-run.ts';

/** An idle worker that holds more memory than this is replaced: what the SDK once took, its process rarely gives back. */
const MAX_IDLE_RSS_BYTES = 200 * 1024 * 1024;

/** After a worker that did not get ready, so long passes before its input may be tried with another one. */
const FAILED_START_PAUSE_MS = 1000;

/**
 * Inputs of one worker that mostly wait, beside the one that it is at: as many as syncs overlap. 500 files of 64 kB took
 * 0.86 s with 16, 0.93 s with 8 and 0.95 s with 4, because more of them share the sync of their folder.
 */
const MAX_SETTLING = 16;

export interface WorkerPoolOptions {
  /** The module that calls `runInputWorker`. */
  readonly entry: URL;
  /** Given to every worker. */
  readonly config: Config;
  readonly maxWorkers: number;
  readonly log: Log;
  /** How workers are started; without any protection unless given. */
  readonly launcher?: Launcher;
  /** Signs for workers; without it they cannot sign. */
  readonly signer?: SignerProcess;
  readonly bounds?: Partial<WorkerBounds>;
  readonly maxIdleRssBytes?: number;
}

/**
 * The processes that inputs are done in. They are started when they are needed, up to the bound, and stay for the
 * next input; one that has grown, is tainted or has ended is replaced.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #bounds: WorkerBounds;
  readonly #maxIdleRssBytes: number;
  readonly #all = new Set<WorkerProcess>();
  /** The last one in is the first one out: its memory is still in the caches. */
  readonly #idle: WorkerProcess[] = [];
  /** Runs whose worker is not free for another one. */
  #active = 0;
  /** Asked to end, and not gone yet. */
  readonly #retiring = new Set<WorkerProcess>();

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#bounds = { ...WORKER_BOUNDS, ...options.bounds };
    this.#maxIdleRssBytes = options.maxIdleRssBytes ?? MAX_IDLE_RSS_BYTES;
  }

  /** Processes there are. */
  get size(): number {
    return this.#all.size;
  }

  /** Starts a worker ahead of the first input. */
  prestart(): void {
    const worker = this.#start();
    if (worker instanceof WorkerProcess) this.#idle.push(worker);
  }

  /**
   * Does an input in a worker. Never rejects. Where more than `maxWorkers` inputs run at once, beside those whose
   * `settling` hook was called, an extra worker is started for each; it ends with the first input that ends then.
   */
  async run(order: InputOrder, hooks: RunHooks): Promise<RunResult> {
    this.#active += 1;
    const result = await this.#runIn(this.#idle.pop() ?? (await this.#startWhenThereIsRoom()), order, hooks);
    if (result.type === 'process-ended' && !result.wasReady) {
      await sleep(FAILED_START_PAUSE_MS, undefined, { signal: hooks.signal }).catch(() => undefined);
    }
    return result;
  }

  async #runIn(worker: WorkerProcess | Error, order: InputOrder, hooks: RunHooks): Promise<RunResult> {
    if (worker instanceof Error) {
      this.#active -= 1;
      return { type: 'process-ended', how: `before it began (${worker.message})`, wasReady: false };
    }
    const { settling: mayStartNext, ...others } = hooks;
    let isFree = false;
    const settling = () => {
      if (worker.settling > MAX_SETTLING || this.#isWornOut(worker)) return;
      isFree = true;
      this.#active -= 1;
      this.#idle.push(worker);
      mayStartNext?.();
    };
    const isShared = mayStartNext !== undefined && !isDoneAlone(order);
    const result = await worker.run(order, isShared ? { ...others, settling } : others);
    if (!isFree) {
      this.#active -= 1;
      this.#keepOrReplace(worker);
    } else if (this.#isWornOut(worker) && this.#takeFromIdle(worker)) this.#retire(worker);
    return result;
  }

  /** Ends all workers. Inputs that still run end with them. */
  async close(): Promise<void> {
    this.#idle.length = 0;
    await Promise.all([...this.#all].map((worker) => worker.quit()));
  }

  /** One that was asked to end may still hold its memory; it ends within a bound. */
  async #startWhenThereIsRoom(): Promise<WorkerProcess | Error> {
    while (this.#all.size >= this.#limit) {
      assert(this.#retiring.size > 0, 'an input is run only where a worker is free for it');
      await Promise.race([...this.#retiring].map((worker) => worker.ended));
    }
    return this.#start();
  }

  /** The error where the system gives no process, such as for want of memory. */
  #start(): WorkerProcess | Error {
    const { entry, config, log, launcher = new Launcher(), signer } = this.#options;
    try {
      return this.#watch(new WorkerProcess(entry, config, this.#bounds, launcher, signer));
    } catch (error) {
      log.error({ err: error }, 'an input worker could not be started');
      return error as Error;
    }
  }

  #watch(worker: WorkerProcess): WorkerProcess {
    this.#all.add(worker);
    void worker.ended.then(() => {
      this.#all.delete(worker);
      this.#retiring.delete(worker);
      if (this.#takeFromIdle(worker)) this.#options.log.warn({ how: worker.how }, 'an idle input worker ended');
    });
    return worker;
  }

  /** Whether it was idle. */
  #takeFromIdle(worker: WorkerProcess): boolean {
    const index = this.#idle.indexOf(worker);
    if (index >= 0) this.#idle.splice(index, 1);
    return index >= 0;
  }

  #keepOrReplace(worker: WorkerProcess): void {
    if (worker.how !== null) return;
    const isExtra = this.#all.size - this.#retiring.size > this.#limit;
    if (isExtra || this.#isWornOut(worker)) this.#retire(worker);
    else this.#idle.push(worker);
  }

  /** Workers that there may be now, beside those that were asked to end. */
  get #limit(): number {
    return Math.max(this.#options.maxWorkers, this.#active);
  }

  #isWornOut({ isSlowed, state: { rssBytes, tainted } }: WorkerProcess): boolean {
    return isSlowed || tainted || rssBytes > this.#maxIdleRssBytes;
  }

  #retire(worker: WorkerProcess): void {
    this.#retiring.add(worker);
    void worker.retire();
  }
}
