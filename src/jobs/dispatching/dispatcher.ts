import { setTimeout as sleep } from 'node:timers/promises';
import { DestinationLedgers } from '../destination-ledgers.ts';
import type { ByteProgress, Claim } from '../job.ts';
import type { DispatcherOptions } from '../job-engine.ts';
import { Persistence } from '../persistence.ts';
import { retryPauseMs } from '../retry.ts';
import type { ClaimedInput, JobRequest } from '../store/claim-inputs.ts';
import type { InputEnd } from '../store/end-input.ts';
import type { JobStore } from '../store/job-store.ts';
import { ExtraSlots, MAX_EXTRA_SLOTS } from './extra-slots.ts';
import type { InputDispatcher } from './input-dispatcher.ts';
import { InputQueue, type StartedInput } from './input-queue.ts';
import { type InputRun, InputRuns, type RunEnd } from './input-runs.ts';
import { InputStash } from './input-stash.ts';
import { QueueRoom } from './queue-room.ts';
import { RequestCache } from './request-cache.ts';

/** Inputs claimed ahead of their turn, of all jobs together. */
const MAX_STASHED = 256;

/** That a stashed input was started is written only when it has run for so long: small files have ended by then. */
const START_NOTED_AFTER_MS = 50;

/** What the embedded dispatcher needs. */
export interface EmbeddedOptions extends DispatcherOptions {
  readonly store: JobStore;
}

/**
 * The embedded engine: decides in this process which input runs next, and sees each through from claim to result.
 * What it holds in memory can be made again from the store at any time.
 */
export class Dispatcher implements InputDispatcher {
  readonly #options: EmbeddedOptions;
  readonly #queue: InputQueue;
  readonly #extraSlots = new ExtraSlots(() => this.#startExtra());
  readonly #stash = new InputStash(MAX_STASHED);
  /** What was started and stands in the store as reserved. */
  readonly #unnoted = new Set<ClaimedInput>();
  readonly #requests: RequestCache;
  readonly #ledgers: DestinationLedgers;
  readonly #runs: InputRuns;
  readonly #work = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();
  readonly #persistence: Persistence;
  readonly #unhurried: JobStore;
  readonly #pauses = new AbortController();
  readonly #room: QueueRoom;
  readonly #holds = new Map<string, Promise<void>>();
  #taken = 0;
  #open = true;

  constructor(options: EmbeddedOptions) {
    const { store, pool, log, clearStagings, inputEnded } = options;
    this.#options = options;
    this.#unhurried = store.unhurried();
    this.#room = new QueueRoom(options.capacity);
    this.#queue = new InputQueue(options.limits);
    this.#requests = new RequestCache((jobId) => store.requestOfJob(jobId));
    this.#ledgers = new DestinationLedgers((jobId) => store.placesOfJob(jobId), log);
    this.#persistence = new Persistence(log, this.#stop.signal);
    const claimDestination = (destination: string, claim: Claim) => this.#ledgers.claim(destination, claim);
    const openFolderOf = (jobId: string) => this.#ledgers.openFolderOf(jobId);
    this.#runs = new InputRuns({ pool, log, clearStagings, claimDestination, openFolderOf, ended: inputEnded });
  }

  get storeWorks(): boolean {
    return this.#persistence.works;
  }

  reserve(count: number): void {
    this.#room.take(count);
  }

  unreserve(count: number): void {
    this.#room.giveBack(count);
  }

  enqueue(jobId: string, sync: boolean, count: number, caller: string | null): void {
    this.#queue.add(jobId, sync, count, caller);
    this.#startWhatMay();
  }

  /** Queues what the store holds from before, whatever room there is: it was accepted. */
  resume(jobId: string, sync: boolean, count: number, caller: string | null): void {
    this.#room.add(count);
    this.enqueue(jobId, sync, count, caller);
  }

  hold(jobId: string): () => void {
    // Cancelled is what the store has as reserved: what was started must stand as running before.
    for (const claim of this.#unnoted) if (claim.jobId === jobId) this.#noteStart(claim);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#holds.set(jobId, promise);
    return () => {
      if (this.#holds.get(jobId) === promise) this.#holds.delete(jobId);
      resolve();
    };
  }

  cancel(jobId: string, jobEnded: boolean): void {
    this.#room.giveBack(this.#queue.drop(jobId));
    this.#stash.drop(jobId);
    this.#runs.cancel(jobId);
    if (jobEnded) this.#endJob(jobId);
  }

  get waiting(): number {
    return this.#room.waiting;
  }

  get running(): number {
    return this.#taken;
  }

  progressOf(jobId: string): ByteProgress {
    return this.#runs.progressOf(jobId);
  }

  async stop(graceMs: number): Promise<void> {
    this.#open = false;
    this.#extraSlots.stop();
    this.#pauses.abort();
    const grace = new AbortController();
    const elapsed = sleep(graceMs, undefined, { signal: grace.signal }).catch(() => undefined);
    await Promise.race([this.#idle(), elapsed]);
    grace.abort();
    const reason = new Error('the service is stopping');
    this.#stop.abort(reason);
    this.#runs.stop(reason);
    await this.#idle();
    await this.#giveBack(this.#stash.takeAll());
  }

  async #idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  #startWhatMay(): void {
    while (this.#open && this.#taken < this.#options.maxRunningInputs) {
      const job = this.#queue.start();
      if (job === undefined) return;
      this.#run(job);
    }
    this.#awaitExtraSlot();
  }

  #startExtra(): void {
    const { maxRunningInputs } = this.#options;
    if (!this.#open || this.#taken < maxRunningInputs) return;
    const job = this.#taken < maxRunningInputs + MAX_EXTRA_SLOTS ? this.#queue.startOfIdleJob() : undefined;
    if (job !== undefined) this.#run(job);
    this.#awaitExtraSlot();
  }

  #awaitExtraSlot(): void {
    if (this.#open && this.#options.maxRunningInputs > 0 && this.#queue.hasWaiting) this.#extraSlots.await();
  }

  #run(job: StartedInput): void {
    this.#taken += 1;
    this.#track(this.#runNextOf(job));
  }

  async #runNextOf({ jobId, sync, caller }: StartedInput): Promise<void> {
    // Opened before the claim, so that a job that is cancelled meanwhile is seen to be.
    const run = this.#runs.open(jobId);
    const [claim, request] = await Promise.all([this.#claimNextOf(jobId), this.#requestOf(jobId)]);
    this.#room.giveBack(1);
    let isFree = false;
    const free = () => {
      if (!isFree) this.#free(jobId);
      isFree = true;
    };
    const recording = claim === undefined ? undefined : this.#record(claim, await this.#do(run, claim, request, free));
    // The worker is free, so that the start of the next input shares the commit of this one's end.
    free();
    const end = await recording;
    this.#runs.close(run);
    if (end?.input === 'queued') this.resume(jobId, sync, 1, caller);
    if (end?.jobEnded) this.#endJob(jobId);
  }

  async #do(
    run: InputRun,
    claim: ClaimedInput,
    request: JobRequest | null | undefined,
    settling: () => void,
  ): Promise<RunEnd> {
    const takesLong = setTimeout(() => this.#noteStart(claim), START_NOTED_AFTER_MS);
    const end: RunEnd = request ? await this.#runs.do(run, claim, request, settling) : { type: 'stopped' };
    clearTimeout(takesLong);
    this.#unnoted.delete(claim);
    return end;
  }

  /** A stashed input starts before its start is written: its attempt is on the disk already. */
  async #claimNextOf(jobId: string): Promise<ClaimedInput | undefined> {
    for (;;) {
      // While the job is being cancelled, the store may have the input as cancelled already.
      for (let held = this.#holds.get(jobId); held !== undefined; held = this.#holds.get(jobId)) await held;
      const stashed = this.#stash.take(jobId);
      if (stashed !== undefined) {
        this.#unnoted.add(stashed);
        if (this.#stash.isLow(jobId) && this.#queue.waitingOf(jobId) > 0) this.#track(this.#claim(jobId, 0));
        return stashed;
      }
      const coming = this.#stash.coming(jobId);
      if (coming === undefined) return (await this.#claim(jobId, 1))[0];
      await coming;
    }
  }

  /** Claims inputs to be started now, and fills the stash; resolves with the former. */
  async #claim(jobId: string, start: number): Promise<readonly ClaimedInput[]> {
    const reserve = this.#stash.expect(jobId, this.#queue.waitingOf(jobId));
    const write = () => this.#options.store.claimInputs(jobId, { start, reserve });
    const claimed = start + reserve === 0 ? [] : ((await this.#persistence.write(write)) ?? []);
    this.#stash.put(jobId, claimed.slice(start));
    return claimed.slice(0, start);
  }

  #requestOf(jobId: string): Promise<JobRequest | null | undefined> {
    return this.#persistence.write(() => this.#requests.of(jobId));
  }

  #noteStart(claim: ClaimedInput): void {
    if (!this.#unnoted.delete(claim)) return;
    this.#track(this.#persistence.write(() => this.#unhurried.startReservedInput(claim)));
  }

  /** Queues again what was reserved in vain. */
  async #giveBack(claims: readonly Claim[]): Promise<void> {
    await Promise.all(claims.map((claim) => this.#persistence.write(() => this.#options.store.requeueInput(claim))));
  }

  #track(work: Promise<unknown>): void {
    const tracked: Promise<unknown> = work.finally(() => this.#work.delete(tracked));
    this.#work.add(tracked);
  }

  #record(claim: ClaimedInput, end: RunEnd): Promise<InputEnd | undefined> {
    const { store } = this.#options;
    const pauseMs = retryPauseMs(claim, end);
    switch (end.type) {
      case 'stopped':
        return this.#persistence.write(() => store.requeueInput(claim));
      case 'process-ended':
        return this.#persistence.write(() => store.recordProcessEnd(claim, end.how));
      case 'ended':
        if (end.entry.status === 'failed') void this.#ledgers.release(claim);
        if (pauseMs !== null) return this.#tryAgain(claim, pauseMs);
        return this.#persistence.write(() =>
          this.#storeFor(claim).finishInput(claim, end.entry, end.progress, end.digest),
        );
    }
  }

  /** Queues an input again after a pause, which ends early where the service stops. */
  async #tryAgain(claim: Claim, pauseMs: number): Promise<InputEnd | undefined> {
    const { store, log } = this.#options;
    log.info({ job_id: claim.jobId, input_index: claim.inputIndex, pause_ms: pauseMs }, 'input is tried again');
    await this.#persistence.write(() => store.recordTransientFailure(claim));
    await sleep(pauseMs, undefined, { signal: this.#pauses.signal }).catch(() => undefined);
    return this.#persistence.write(() => store.requeueInput(claim));
  }

  /** Nobody can tell when an input ended but the last of its job, whose end ends the job. */
  #storeFor({ jobId }: Claim): JobStore {
    return this.#queue.waitingOf(jobId) > 0 ? this.#unhurried : this.#options.store;
  }

  #free(jobId: string): void {
    this.#taken -= 1;
    this.#extraSlots.freed();
    this.#queue.end(jobId);
    this.#startWhatMay();
    if (!this.#queue.runs(jobId)) this.#requests.forget(jobId);
  }

  #endJob(jobId: string): void {
    this.#ledgers.forget(jobId);
    this.#options.jobEnded(jobId);
  }
}
