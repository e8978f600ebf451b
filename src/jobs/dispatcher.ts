import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { DestinationLedger } from './destination-ledger.ts';
import { InputQueue, type QueueLimits, type StartedInput } from './input-queue.ts';
import { InputStash } from './input-stash.ts';
import { type ByteProgress, type Claim, failedEntry, NO_PROGRESS, type ResultEntry, succeededEntry } from './job.ts';
import type { Log } from './log.ts';
import type { ClaimedInput } from './store/claim-input.ts';
import type { InputEnd } from './store/end-input.ts';
import type { JobStore } from './store/job-store.ts';
import type { WorkerPool } from './worker-pool.ts';
import type { RunHooks, RunResult } from './worker-process.ts';

/** While the store cannot be written, what is to be written is tried again after so long, and then ever longer. */
const STORE_RETRY_FIRST_MS = 100;
const STORE_RETRY_LAST_MS = 5_000;

/** Inputs claimed ahead of their turn, for each that may run. */
const STASHED_PER_WORKER = 2;

export interface DispatcherOptions {
  readonly store: JobStore;
  readonly pool: WorkerPool;
  readonly log: Log;
  readonly limits: QueueLimits;
  /** Inputs that run at once, of all jobs together. */
  readonly maxRunningInputs: number;
  /** Inputs that wait at most (`worker.queue_capacity`). */
  readonly capacity: number;
  /** Removes what a claim left behind whose worker may be gone. Never rejects. */
  readonly clearStagings: (claim: Claim) => Promise<void>;
  /** Called when the end of a job is on the disk. */
  readonly jobEnded: (jobId: string) => void;
}

/** An input between its claim and its end. */
interface RunningInput {
  readonly claim: ClaimedInput;
  progress: ByteProgress;
}

/**
 * The embedded engine: decides in this process which input runs next, and sees each through from claim to result.
 * What it holds in memory can be made again from the store at any time.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #queue: InputQueue;
  readonly #stash: InputStash;
  readonly #running = new Map<string, Set<RunningInput>>();
  readonly #ledgers = new Map<string, Promise<DestinationLedger>>();
  readonly #work = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();
  #waiting = 0;
  #taken = 0;
  #open = true;
  #storeFails = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#queue = new InputQueue(options.limits);
    this.#stash = new InputStash(options.maxRunningInputs * STASHED_PER_WORKER);
  }

  /** Whether what was written last could be written. */
  get storeWorks(): boolean {
    return !this.#storeFails;
  }

  /** Makes room in the queue for inputs that are about to be recorded, or throws QUEUE_FULL, or JOB_EXCEEDS_QUEUE where it could never be. */
  reserve(count: number): void {
    const { capacity } = this.#options;
    if (count > capacity)
      throw new AppError('JOB_EXCEEDS_QUEUE', { asked: count, limit: capacity }, { field: 'inputs' });
    if (this.#waiting + count > capacity) {
      throw new AppError('QUEUE_FULL', { waiting: this.#waiting, asked: count, limit: capacity });
    }
    this.#waiting += count;
  }

  /** Gives back room that was reserved for inputs which could not be recorded. */
  unreserve(count: number): void {
    this.#waiting -= count;
  }

  /** Queues inputs that are recorded and have room. */
  enqueue(jobId: string, sync: boolean, count: number): void {
    this.#queue.add(jobId, sync, count);
    this.#startWhatMay();
  }

  /** Queues what the store holds from before, whatever room there is: it was accepted. */
  resume(jobId: string, sync: boolean, count: number): void {
    this.#waiting += count;
    this.enqueue(jobId, sync, count);
  }

  /** How far the running inputs of a job are, together. */
  progressOf(jobId: string): ByteProgress {
    const inputs = [...(this.#running.get(jobId) ?? [])];
    return inputs.reduce((sum, { progress }) => plus(sum, progress), NO_PROGRESS);
  }

  /** Starts nothing more, lets what runs end within the grace, and queues the rest again. */
  async stop(graceMs: number): Promise<void> {
    this.#open = false;
    const grace = new AbortController();
    const elapsed = sleep(graceMs, undefined, { signal: grace.signal }).catch(() => undefined);
    await Promise.race([this.#idle(), elapsed]);
    grace.abort();
    this.#stop.abort(new Error('the service is stopping'));
    await this.#idle();
    await this.#emptyStash();
  }

  async #idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  #startWhatMay(): void {
    while (this.#open && this.#taken < this.#options.maxRunningInputs) {
      const job = this.#queue.start();
      if (job === undefined) return;
      this.#taken += 1;
      this.#track(this.#runNextOf(job));
    }
  }

  async #runNextOf(job: StartedInput): Promise<void> {
    const claim = await this.#claimNextOf(job);
    this.#waiting -= 1;
    if (claim === null || claim === undefined) return this.#free(job.jobId);
    const input: RunningInput = { claim, progress: NO_PROGRESS };
    const ofJob = this.#running.get(job.jobId) ?? new Set();
    this.#running.set(job.jobId, ofJob.add(input));
    const result = await this.#options.pool.run(claim, this.#hooksFor(input));
    if (result.type === 'process-ended' || result.type === 'aborted') await this.#options.clearStagings(claim);
    const recording = this.#record(input, result);
    // The worker is free, so that the start of the next input shares the commit of this one's end.
    this.#free(job.jobId);
    this.#settle(job, input, await recording);
  }

  /** A stashed input starts while its start is still being written: its attempt is on the disk already. */
  async #claimNextOf({ jobId }: StartedInput): Promise<ClaimedInput | null | undefined> {
    const stashed = this.#stash.take(jobId);
    const coming = stashed ?? this.#startNextOf(jobId);
    this.#refillStash(jobId);
    const claim = await coming;
    if (stashed === undefined) return claim;
    // Nothing was reserved after all, as when the store failed for a while.
    if (claim === null || claim === undefined) return this.#startNextOf(jobId);
    this.#track(this.#persist(() => this.#options.store.startReservedInput(claim)));
    return claim;
  }

  #startNextOf(jobId: string): Promise<ClaimedInput | null | undefined> {
    return this.#persist(() => this.#options.store.startNextInput(jobId));
  }

  #refillStash(jobId: string): void {
    if (!this.#stash.hasRoom(jobId, this.#queue.waitingOf(jobId))) return;
    const claim = this.#persist(() => this.#options.store.reserveNextInput(jobId));
    this.#stash.put(
      jobId,
      claim.then((input) => input ?? null),
    );
  }

  async #emptyStash(): Promise<void> {
    for (const coming of this.#stash.takeAll()) {
      const claim = await coming;
      if (claim !== null) await this.#persist(() => this.#options.store.requeueInput(claim));
    }
  }

  #track(work: Promise<unknown>): void {
    const tracked: Promise<unknown> = work.finally(() => this.#work.delete(tracked));
    this.#work.add(tracked);
  }

  /** Records how the run of an input ended. */
  #record({ claim, progress }: RunningInput, result: RunResult): Promise<InputEnd | undefined> {
    const { store, log } = this.#options;
    const ids = { job_id: claim.jobId, input_index: claim.inputIndex };
    switch (result.type) {
      case 'aborted':
        return this.#persist(() => store.requeueInput(claim));
      case 'process-ended':
        log.warn({ ...ids, attempt: claim.attempt, how: result.how }, 'the worker of an input ended');
        return this.#persist(() => store.recordProcessEnd(claim, result.how));
      case 'succeeded':
      case 'failed': {
        if (result.type === 'failed' && result.error === null)
          log.error({ ...ids, stack: result.bug }, 'an input met a bug');
        const entry = entryOf(claim, result);
        if (entry.status === 'failed') void this.#release(claim);
        log.info({ ...ids, reason: entry.error_details?.reason, phases_ms: result.phases }, `input ${entry.status}`);
        return this.#persist(() => store.finishInput(claim, entry, progress));
      }
    }
  }

  /** Takes note in memory of what is on the disk now. */
  #settle({ jobId, sync }: StartedInput, input: RunningInput, end: InputEnd | undefined): void {
    const ofJob = this.#running.get(jobId);
    ofJob?.delete(input);
    if (ofJob?.size === 0) this.#running.delete(jobId);
    if (end?.input === 'queued') this.resume(jobId, sync, 1);
    if (end?.jobEnded) this.#endJob(jobId);
  }

  #free(jobId: string): void {
    this.#taken -= 1;
    this.#queue.end(jobId);
    this.#startWhatMay();
  }

  #endJob(jobId: string): void {
    this.#ledgers.delete(jobId);
    this.#options.log.info({ job_id: jobId }, 'job ended');
    this.#options.jobEnded(jobId);
  }

  #hooksFor(input: RunningInput): RunHooks {
    return {
      signal: this.#stop.signal,
      progress: (progress) => {
        input.progress = progress;
      },
      claim: (destination) => this.#claimDestination(destination, input.claim),
    };
  }

  async #claimDestination(destination: string, { jobId, inputIndex }: ClaimedInput): Promise<AppErrorData | undefined> {
    try {
      const ledger = await this.#ledgerOf(jobId);
      return await ledger.claim(destination, inputIndex);
    } catch (error) {
      // The next claim tries again to read what the job reads and writes.
      this.#ledgers.delete(jobId);
      this.#options.log.error(
        { job_id: jobId, input_index: inputIndex, err: error },
        'a destination could not be checked',
      );
      return (error instanceof AppError ? error : new AppError('INPUT_MET_BUG', { jobId, inputIndex })).toData();
    }
  }

  /** What a failed input had claimed is free for others. */
  async #release({ jobId, inputIndex }: ClaimedInput): Promise<void> {
    const ledger = await this.#ledgers.get(jobId)?.catch(() => undefined);
    ledger?.release(inputIndex);
  }

  #ledgerOf(jobId: string): Promise<DestinationLedger> {
    const known = this.#ledgers.get(jobId);
    if (known !== undefined) return known;
    const made = this.#options.store.placesOfJob(jobId).then((places) => DestinationLedger.of(places));
    this.#ledgers.set(jobId, made);
    return made;
  }

  /** Writes to the store until it succeeds or the service stops: a full disk must cost no result. */
  async #persist<T>(write: () => Promise<T>): Promise<T | undefined> {
    for (let pauseMs = STORE_RETRY_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, STORE_RETRY_LAST_MS)) {
      try {
        const value = await write();
        this.#storeFails = false;
        return value;
      } catch (error) {
        this.#options.log.error({ err: error }, 'the job store could not be written');
        // A statement that is wrong stays wrong: its input is taken up again when the service next starts.
        if (!(error instanceof AppError)) return undefined;
        this.#storeFails = true;
        if (this.#stop.signal.aborted) return undefined;
        await sleep(pauseMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
  }
}

function entryOf(claim: ClaimedInput, result: RunResult & { type: 'succeeded' | 'failed' }): ResultEntry {
  const { jobId, inputIndex } = claim;
  if (result.type === 'succeeded') return succeededEntry(inputIndex, result.outcome);
  return failedEntry(inputIndex, result.error ?? new AppError('INPUT_MET_BUG', { jobId, inputIndex }).toData());
}

function plus(a: ByteProgress, b: ByteProgress): ByteProgress {
  return { bytesDone: a.bytesDone + b.bytesDone, bytesTotal: a.bytesTotal + b.bytesTotal };
}
