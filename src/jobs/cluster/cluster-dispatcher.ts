import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { DestinationLedgers } from '../destination-ledgers.ts';
import { ExtraSlots, MAX_EXTRA_SLOTS } from '../dispatching/extra-slots.ts';
import type { InputDispatcher } from '../dispatching/input-dispatcher.ts';
import { InputRuns, type RunEnd } from '../dispatching/input-runs.ts';
import { QueueRoom } from '../dispatching/queue-room.ts';
import { RequestCache } from '../dispatching/request-cache.ts';
import { type ByteProgress, NO_PROGRESS } from '../job.ts';
import type { DispatcherOptions } from '../job-engine.ts';
import { Persistence } from '../persistence.ts';
import { retryPauseMs } from '../retry.ts';
import { SparingLook } from '../sparing-look.ts';
import type { ClaimedInput } from '../store/claim-inputs.ts';
import type { InputEnd } from '../store/end-input.ts';
import type { JobStore } from '../store/job-store.ts';
import type { PostgresRunner } from '../store/postgres/postgres-runner.ts';
import { type JobPlaces, placesOfAlone } from '../store/unfinished-jobs.ts';
import type { Announcer } from './announcer.ts';
import type { Deliveries } from './deliveries.ts';
import { exchangeDeliveries } from './exchange-deliveries.ts';
import { type HeldInput, HeldInputs } from './held-inputs.ts';
import { type EndedInput, type EndedRun, type Exchanged, InputExchange } from './input-exchange.ts';
import { recordUnfinished } from './record-unfinished.ts';
import type { TakenDelivery } from './taken-delivery.ts';

/** So often this node says that it lives, and looks whether what it runs is still its own. */
const PULSE_INTERVAL_MS = 2_000;

/** What the dispatcher of a node needs. */
export interface ClusterDispatcherOptions extends DispatcherOptions {
  readonly store: JobStore;
  readonly runner: PostgresRunner;
  readonly deliveries: Deliveries;
  readonly announcer: Announcer;
}

/**
 * Has inputs done that several nodes share: takes deliveries as long as there are workers free, does each inside a lease,
 * and records what came of it together with the end of its delivery.
 */
export class ClusterDispatcher implements InputDispatcher {
  readonly #options: ClusterDispatcherOptions;
  readonly #room: QueueRoom;
  readonly #held: HeldInputs;
  readonly #requests: RequestCache;
  readonly #ledgers: DestinationLedgers;
  readonly #runs: InputRuns;
  readonly #stop = new AbortController();
  readonly #persistence: Persistence;
  readonly #work = new Set<Promise<unknown>>();
  readonly #pulse: NodeJS.Timeout;
  readonly #exchange: InputExchange;
  readonly #extraSlots = new ExtraSlots(() => this.#takeExtra());
  /** Whether one more input may be taken than there are workers. */
  #mayTakeExtra = false;
  /** Inputs that wait, of all nodes. */
  readonly #waiting: SparingLook<number>;
  #open = true;
  #pulsing = false;

  constructor(options: ClusterDispatcherOptions) {
    const { store, deliveries, pool, log, clearStagings, inputEnded } = options;
    this.#options = options;
    this.#room = new QueueRoom(options.capacity);
    this.#waiting = new SparingLook(() => store.countQueued());
    this.#held = new HeldInputs(deliveries);
    this.#requests = new RequestCache((jobId) => store.requestOfJob(jobId));
    this.#ledgers = new DestinationLedgers((jobId) => this.#placesOf(jobId), log, store);
    this.#persistence = new Persistence(log, this.#stop.signal);
    this.#runs = new InputRuns({
      pool,
      log,
      clearStagings,
      claimDestination: (destination, claim) => this.#ledgers.claim(destination, claim),
      mayDeliver: (claim) => this.#mayDeliver(claim),
      ended: inputEnded,
    });
    this.#pulse = setInterval(() => void this.#beat(), PULSE_INTERVAL_MS).unref();
    this.#exchange = new InputExchange({
      room: (asked) => this.#roomBeside(asked),
      exchange: (ended, count) => this.#takeAndRecord(ended, count),
      begin: (taken) => this.#begin(taken),
    });
  }

  get storeWorks(): boolean {
    return this.#persistence.works;
  }

  get waiting(): number {
    return this.#room.waiting;
  }

  get running(): number {
    return this.#held.size;
  }

  reserve(count: number): void {
    this.#room.take(count);
  }

  unreserve(count: number): void {
    this.#room.giveBack(count);
  }

  /** The deliveries were recorded with the inputs, and every node was told. */
  enqueue(): void {
    this.wake();
  }

  /** Nothing is started here but by a transaction, before that of the cancel or after it. */
  hold(): () => void {
    return () => undefined;
  }

  cancel(jobId: string, jobEnded: boolean): void {
    this.#runs.cancel(jobId);
    if (jobEnded) this.#options.jobEnded(jobId);
  }

  /** The store knows, for all nodes alike. */
  progressOf(): ByteProgress {
    return NO_PROGRESS;
  }

  /** Something may wait: looks at once. */
  wake(): void {
    this.#exchange.wake();
  }

  async stop(graceMs: number): Promise<void> {
    this.#open = false;
    this.#extraSlots.stop();
    const grace = new AbortController();
    await Promise.race([this.#idle(), sleep(graceMs, undefined, { signal: grace.signal }).catch(() => undefined)]);
    grace.abort();
    const reason = new Error('the service is stopping');
    this.#stop.abort(reason);
    this.#runs.stop(reason);
    await this.#idle();
    this.#exchange.close();
    clearInterval(this.#pulse);
    while (this.#pulsing) await sleep(5);
  }

  async #idle(): Promise<void> {
    // What was being taken when it was called may begin meanwhile.
    do {
      await this.#exchange.settled();
      await Promise.all(this.#work);
    } while (this.#work.size > 0);
  }

  #track(work: Promise<unknown>): void {
    const tracked: Promise<unknown> = work.finally(() => this.#work.delete(tracked));
    this.#work.add(tracked);
  }

  /** One at a time where a job may have fewer inputs at once than there are workers. */
  #roomBeside(asked: number): number {
    const { maxRunningInputs, limits } = this.#options;
    const { running } = this.#held;
    if (!this.#open || running.size + asked >= limits.maxRunningJobs) return 0;
    const free = maxRunningInputs - sumOf(running.values()) - asked;
    if (free <= 0) return this.#mayTakeExtra && asked === 0 && free > -MAX_EXTRA_SLOTS ? 1 : 0;
    if (limits.maxInputsPerJob >= maxRunningInputs) return Math.min(free, limits.maxRunningJobs - running.size - asked);
    return asked === 0 ? Math.min(free, 1) : 0;
  }

  /** Whether anything waits is not known here: it is looked for as long as all workers are busy. */
  #takeExtra(): void {
    if (!this.#isFull) return;
    this.#mayTakeExtra = true;
    this.wake();
    this.#mayTakeExtra = false;
    this.#extraSlots.await();
  }

  get #isFull(): boolean {
    const { maxRunningInputs } = this.#options;
    return this.#open && maxRunningInputs > 0 && sumOf(this.#held.running.values()) >= maxRunningInputs;
  }

  /** Where every worker is busy, none of the jobs that have an input running, nor of their callers. */
  #takeAndRecord(ended: readonly EndedInput[], count: number): Promise<Exchanged> {
    const { store, runner, deliveries, limits } = this.#options;
    const isExtra = count > 0 && this.#isFull;
    const parties = { persistence: this.#persistence, runner, deliveries, clock: this.#held.clock };
    return exchangeDeliveries(parties, ended, count, async () => {
      const { running } = this.#held;
      if (isExtra) return store.jobsOfSameCallers([...running.keys()]);
      return [...running].filter(([, inputs]) => inputs >= limits.maxInputsPerJob).map(([jobId]) => jobId);
    });
  }

  #begin(taken: TakenDelivery): void {
    const { claim } = taken;
    if (taken.jobEnded) this.#options.jobEnded(taken.delivery.jobId);
    if (claim === null) return;
    // The place is made at once, so that a job that is cancelled meanwhile is seen to be.
    const run = this.#runs.open(claim.jobId);
    if (this.#stop.signal.aborted) run.abort.abort(this.#stop.signal.reason);
    const input = this.#held.add(taken, claim, run);
    this.#room.giveBack(1);
    if (this.#isFull) this.#extraSlots.await();
    this.#track(this.#seeThrough(input));
  }

  async #seeThrough(input: HeldInput): Promise<void> {
    const { claim, run, requestOfAlone } = input;
    const request = requestOfAlone ?? (await this.#persistence.write(() => this.#requests.of(claim.jobId)));
    const end: RunEnd = request ? await this.#runs.do(run, claim, request) : { type: 'stopped' };
    input.over = true;
    this.#extraSlots.freed();
    const recorded = await this.#record(input, end);
    if (recorded !== undefined) this.#tell(claim, end, recorded);
    this.#held.remove(input);
    this.#runs.close(run);
    if (this.#held.has(claim.jobId)) return;
    this.#requests.forget(claim.jobId);
    this.#ledgers.forget(claim.jobId);
  }

  async #record(input: HeldInput, end: RunEnd): Promise<InputEnd | undefined> {
    const { runner, deliveries } = this.#options;
    if (end.type === 'ended' && end.entry.status === 'failed') await this.#ledgers.release(input.claim);
    if (isResult(input.claim, end)) return this.#recordResult(input, end);
    const recorded = await this.#persistence.write(() =>
      runner.transaction((db) => recordUnfinished(db, runner, deliveries, input, end)),
    );
    this.wake();
    return recorded;
  }

  /** Other nodes are told of a job that has ended. */
  async #recordResult(input: HeldInput, end: EndedRun): Promise<InputEnd | undefined> {
    const recorded = await this.#exchange.record(input, end);
    if (recorded?.jobEnded) this.#options.announcer.announce({ type: 'ended', jobId: input.claim.jobId });
    return recorded;
  }

  #tell({ jobId, inputIndex, attempt }: ClaimedInput, end: RunEnd, recorded: InputEnd): void {
    const { log, jobEnded } = this.#options;
    const ids = { job_id: jobId, input_index: inputIndex, attempt };
    if (recorded.input === 'late' && end.type === 'ended' && end.entry.status === 'succeeded') {
      log.error(
        { ...ids, delivered_digest: end.digest },
        'an output was delivered after its claim was lost: another attempt may have delivered to the same place',
      );
    } else if (recorded.input === 'late') log.warn(ids, 'a claim was lost: another node does the input');
    if (recorded.jobEnded) jobEnded(jobId);
  }

  #placesOf(jobId: string): Promise<JobPlaces> {
    const alone = this.#held.aloneOf(jobId);
    if (!alone?.requestOfAlone) return this.#options.store.placesOfJob(jobId);
    return Promise.resolve(placesOfAlone(alone.claim, alone.requestOfAlone));
  }

  /** Waits where the database cannot be reached: it may come back, and the input still be this node's. */
  async #mayDeliver(claim: ClaimedInput): Promise<AppErrorData | undefined> {
    const input = this.#held.of(claim);
    if (input !== undefined && (await this.#held.mayDeliver(input))) return undefined;
    return new AppError('LEASE_LOST', { jobId: claim.jobId, inputIndex: claim.inputIndex }).toData();
  }

  /** Says that this node lives, tells how far its inputs are, and looks what is not its own any more. */
  async #beat(): Promise<void> {
    if (this.#pulsing) return;
    this.#pulsing = true;
    const { store, log } = this.#options;
    try {
      for (const { claim, run } of await this.#held.renew()) {
        log.warn({ job_id: claim.jobId, input_index: claim.inputIndex, attempt: claim.attempt }, 'a lease was lost');
        run.abort.abort(new Error('the lease was lost'));
      }
      for (const jobId of await store.cancelledAmong(this.#held.jobs)) this.#runs.cancel(jobId);
      const moved = this.#held.takeMoved();
      if (moved.length > 0) await store.noteProgress(moved);
      const waiting = await this.#waiting.newValue();
      if (waiting !== undefined) this.#room.correct(waiting);
    } catch (error) {
      log.warn({ err: error }, 'the database could not be told that this node lives');
    } finally {
      this.#pulsing = false;
    }
  }
}

/** Whether that is how the input ends, and not tried again. */
function isResult(claim: ClaimedInput, end: RunEnd): end is EndedRun {
  return end.type === 'ended' && retryPauseMs(claim, end) === null;
}

function sumOf(counts: Iterable<number>): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}
