import { raceTimeout } from '#concurrency/race-abort.ts';
import { ThrottledQuery } from '#concurrency/throttled-query.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import type { JobReport } from '#telemetry/run-report.ts';
import { NO_IDENTITIES, signersOf } from './identities.ts';
import { type InputAttempt, NO_PROGRESS } from './job.ts';
import { AbsentIdentities } from './outages/absent-identities.ts';
import { HangWatch } from './outages/hang-watch.ts';
import { type Outage, Outages, type OutagesOptions } from './outages/outages.ts';
import type { JobEngine, JobQueue, LeaseRequest } from './queue/job-queue.ts';
import { failedEntry } from './result-entries.ts';
import { Admission, type AdmissionOptions } from './scheduling/admission.ts';
import { OutputPathRegistries } from './scheduling/output-path-registry.ts';
import { InputRun, InputRunner, type RunnerOptions } from './scheduling/run-input.ts';
import { type SlotBounds, Slots } from './scheduling/slots.ts';
import { StoreWrites } from './scheduling/store-writes.ts';
import type { FinishedInput, HandedIn, JobRequest, JobStore, LeasedInput, ReleasedInput } from './store/job-store.ts';

/** Leases at the same time. Slots that become free meanwhile share the next one. */
const MAX_CONCURRENT_LEASES = 2;

/** Inputs that wait for a signature beside those that run: each keeps its worker, and not its slot. */
const MAX_AWAITING_SIGNATURE = 8;

/**
 * An extra input may start when all slots are taken and none became free for this long; at once where its caller has nothing
 * running, as far as this node knows who waits.
 */
const STALL_TIMEOUT_MS = 1_000;

/** Nodes that start together see each other within this time. */
const MAX_GRACE_MS = 60_000;

/** The environment of a scheduler. */
export interface SchedulerOptions
  extends SlotBounds,
    Pick<AdmissionOptions, 'capacity' | 'callers'>,
    Omit<RunnerOptions, 'outages' | 'outputPaths' | 'queue'>,
    Pick<OutagesOptions, 'probes' | 'outageHours'> {
  /** Called when the end of a job is committed that this process brought about. */
  readonly jobFinished: (report: JobReport) => void;
  /** Called when a job has finished in any process; for one that finished here perhaps as well. */
  readonly jobFinishedElsewhere: (jobId: string) => void;
  /** Called when the failure of an input is recorded as its result. */
  readonly inputFailed: (reason: Reason) => void;
}

/**
 * Pulls inputs from the queue while workers are free, runs each under its lease, and hands it in. Everything that is held in
 * memory can be rebuilt from the store.
 */
export class Scheduler {
  readonly admission: Admission;
  readonly writes: StoreWrites;
  readonly #options: SchedulerOptions;
  readonly #queue: JobQueue;
  readonly #store: JobStore;
  readonly #outputPaths: OutputPathRegistries;
  readonly #outages: Outages;
  readonly #absent: AbsentIdentities | null;
  readonly #runner: InputRunner;
  /** Counts the queued inputs of all nodes. */
  readonly #recount: ThrottledQuery<void>;
  readonly #runs = new Set<InputRun>();
  readonly #slots: Slots;
  readonly #work = new Set<Promise<unknown>>();
  readonly #draining = new AbortController();
  readonly #stopping = new AbortController();
  #renewals: NodeJS.Timeout | undefined;
  #hangs: HangWatch | undefined;
  #renewing: Promise<void> | null = null;
  #stall: NodeJS.Timeout | undefined;
  /** Leases that are under way, and the inputs that they may return. */
  #leases = 0;
  #requested = 0;
  /** The filter of the last lease that found too few inputs, until there may be work. */
  #exhausted: string | null = null;
  #workEvents = 0;

  constructor(options: SchedulerOptions, engine: JobEngine) {
    const { log } = options;
    const { store, queue } = engine;
    this.#options = options;
    this.#queue = queue;
    this.#store = store;
    this.writes = new StoreWrites(log, () => store.probeWrite(), this.#stopping.signal);
    this.#outputPaths = new OutputPathRegistries(store, this.writes, log, queue.isShared);
    const { identities: own, defaultIdentity, retriesOutages } = options;
    const signers = () =>
      own === undefined ? null : [...signersOf(own, defaultIdentity()), ...(this.#absent?.nowhere ?? [])];
    this.#outages = new Outages({ ...options, signers, changed: () => this.#lookForWork() });
    // Nodes that only take jobs tell of the identities that no other has. Commands do not wait for one.
    const tellsOfIdentities = !retriesOutages && (own !== undefined || options.maxRunningInputs === 0);
    this.#absent = tellsOfIdentities
      ? new AbsentIdentities({
          ...{ own: own ?? NO_IDENTITIES, store, nodes: engine, outages: this.#outages },
          graceMs: Math.min(options.outageHours * 3_600_000, MAX_GRACE_MS),
          changed: () => this.#lookForWork(),
        })
      : null;
    this.#slots = new Slots(options, this.#runs, this.#outages);
    this.#runner = new InputRunner({ ...options, outages: this.#outages, outputPaths: this.#outputPaths, queue });
    this.admission = new Admission({ ...options, outages: () => this.outages, store, nodes: engine });
    this.#recount = new ThrottledQuery(() => this.admission.recount());
  }

  /** Starts queued inputs, and looks for others from then on. Throws when the store cannot be used. */
  async begin(): Promise<void> {
    await this.#recount.value();
    this.#hangs = new HangWatch(this.#runs, this.#outages);
    this.#absent?.begin();
    this.#renewals = setInterval(() => {
      this.#renewing ??= this.#renew().finally(() => {
        this.#renewing = null;
      });
    }, this.#queue.renewalIntervalMs).unref();
    void this.#followEvents();
    this.#fillSlots();
  }

  /** The dependencies that are away, as far as this process knows. */
  get outages(): readonly Outage[] {
    return this.#outages.list();
  }

  /** The number of slots that are taken. */
  get running(): number {
    return this.#slots.taken;
  }

  /** Takes note of identities that were replaced, and leases what they allow. */
  async identitiesChanged(): Promise<void> {
    await this.#absent?.look();
    this.#lookForWork();
  }

  /** Reports a job that finished in this process. */
  jobFinished(report: JobReport): void {
    const { jobId, operation, caller, status, inputs, queuedAtMs, finishedAtMs } = report;
    const ids = { job_id: jobId, ...(caller !== null && { caller }) };
    this.#outputPaths.forget(jobId);
    this.#options.log.info({ ...ids, operation, status, inputs, ms: finishedAtMs - queuedAtMs }, 'job ended');
    this.#options.jobFinished(report);
  }

  /** Starts nothing more, lets running inputs finish within the grace period, and queues the others again. */
  async stop(graceMs: number): Promise<void> {
    this.#draining.abort();
    this.#outages.stop();
    this.#hangs?.stop();
    this.#absent?.stop();
    clearTimeout(this.#stall);
    await raceTimeout(this.#idle(), graceMs, undefined);
    const reason = new Error('the service is stopping');
    this.#stopping.abort(reason);
    for (const { abort } of this.#runs) abort.abort(reason);
    await this.#idle();
    clearInterval(this.#renewals);
    await this.#renewing;
  }

  async #idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  #track(work: Promise<unknown>): void {
    const tracked: Promise<unknown> = work.finally(() => this.#work.delete(tracked));
    this.#work.add(tracked);
  }

  async #followEvents(): Promise<void> {
    for await (const event of this.#queue.events) {
      if (event.type === 'work') this.#lookForWork();
      else if (event.type === 'cancelled') for (const run of this.#runsOf(event.jobId)) run.cancel();
      else this.#options.jobFinishedElsewhere(event.jobId);
    }
  }

  /** Leases inputs, because some may have been queued. */
  #lookForWork(): void {
    this.#workEvents += 1;
    this.#exhausted = null;
    this.#fillSlots();
    if (this.#stall === undefined) this.#awaitExtraSlot();
  }

  #fillSlots(): void {
    if (this.#leases >= MAX_CONCURRENT_LEASES || this.#draining.signal.aborted) return;
    const slots = this.#slots;
    const request =
      slots.nextRequest(this.#requested) ?? slots.requestForHeldUp(this.admission.callers, this.#requested);
    if (request !== null && filterOf(request) !== this.#exhausted) this.#track(this.#lease(request));
  }

  async #lease(request: LeaseRequest): Promise<void> {
    const { count } = request;
    const workEvents = this.#workEvents;
    this.#leases += 1;
    this.#requested += count;
    const leased = await this.writes.write(() => this.#queue.lease(request));
    this.#leases -= 1;
    this.#requested -= count;
    for (const report of leased?.finishedJobs ?? []) this.jobFinished(report);
    const inputs = leased?.inputs ?? [];
    if (inputs.length < count && workEvents === this.#workEvents) this.#exhausted = filterOf(request);
    for (const input of inputs) this.#start(input);
    this.#fillSlots();
  }

  /** Starts the wait for an extra slot anew, because one was taken or freed. */
  #awaitExtraSlot(): void {
    clearTimeout(this.#stall);
    const mayStall = !this.#draining.signal.aborted && this.#slots.areFull;
    this.#stall = mayStall ? setTimeout(() => this.#leaseExtra(), STALL_TIMEOUT_MS) : undefined;
  }

  #leaseExtra(): void {
    this.#stall = undefined;
    const request = this.#slots.extraRequest(this.#requested);
    if (request !== null) this.#track(this.#lease(request));
  }

  #start(input: LeasedInput): void {
    const run = new InputRun(input);
    this.#runs.add(run);
    this.admission.release(input.caller, 1);
    if (this.#stopping.signal.aborted) run.abort.abort(this.#stopping.signal.reason);
    this.#awaitExtraSlot();
    this.#track(this.#runAndHandIn(run));
  }

  async #runAndHandIn(run: InputRun): Promise<void> {
    const end = await this.#run(run);
    // The slot is free before the end is committed, so that the start of the next input shares the commit.
    this.#freeSlot(run, 'ended');
    const handedIn = await this.writes.write(() =>
      'reason' in end ? this.#queue.release(end) : this.#queue.finish(end),
    );
    this.#runs.delete(run);
    // A dependency may have been tried with this one alone.
    this.#fillSlots();
    if (this.#runsOf(run.lease.jobId).length === 0) this.#outputPaths.suspend(run.lease.jobId);
    if (handedIn === undefined) return;
    if (handedIn.input === 'queued') this.admission.add(run.lease.caller, 1);
    this.#handedIn(end, handedIn);
  }

  async #run(run: InputRun): Promise<FinishedInput | ReleasedInput> {
    const { lease } = run;
    const request = lease.request ?? (await this.#requestOf(lease.jobId));
    if (request === null || (request === undefined && this.#stopping.signal.aborted))
      return { lease, reason: 'stopped' };
    // Without the pauses of retries it would be tried for ever.
    if (request === undefined) return this.#runner.retryOf(unreadableRequest(lease), lease, true);
    run.request = request;
    return this.#runner.run(run, request, () => this.#awaitSignature(run));
  }

  /** Returns the request of a job, which its running inputs share. */
  async #requestOf(jobId: string): Promise<JobRequest | null | undefined> {
    const other = this.#runsOf(jobId).find(({ request }) => request !== null);
    return other?.request ?? (await this.writes.write(() => this.#store.requestOfJob(jobId)));
  }

  /** Frees the slot of an input that waits for a signature. */
  #awaitSignature(run: InputRun): void {
    const others = [...this.#runs].filter(({ state }) => state === 'awaits-signature');
    if (others.length < MAX_AWAITING_SIGNATURE) this.#freeSlot(run, 'awaits-signature');
  }

  #freeSlot(run: InputRun, state: InputRun['state']): void {
    const hadSlot = run.state === 'has-slot';
    run.state = state;
    if (!hadSlot) return;
    this.#awaitExtraSlot();
    this.#fillSlots();
  }

  #handedIn(end: FinishedInput | ReleasedInput, { input, finishedJob }: HandedIn): void {
    if (input === 'late') this.#logLate(end);
    else if ('entry' in end && end.entry.error_details !== undefined)
      this.#options.inputFailed(end.entry.error_details.reason as Reason);
    if (finishedJob !== null) this.jobFinished(finishedJob);
  }

  #logLate(end: FinishedInput | ReleasedInput): void {
    const ids = idsOf(end.lease);
    if ('reason' in end || end.entry.status !== 'succeeded') {
      this.#options.log.warn(ids, 'a lease was lost: another node runs the input');
      return;
    }
    this.#options.log.error(
      { ...ids, delivered_digest: end.digest },
      'an output was published after its lease was lost: another attempt may have published to the same path',
    );
  }

  /** Renews leases, records progress, and stops inputs that were cancelled or whose lease was lost. */
  async #renew(): Promise<void> {
    try {
      const running = [...this.#runs].map(({ lease: { jobId, inputIndex, attempt }, progress }) => ({
        ...{ jobId, inputIndex, attempt },
        ...progress,
      }));
      const { lost, cancelledJobs } = await this.#queue.renew(running);
      for (const lease of lost) this.#stopLost(lease);
      for (const jobId of cancelledJobs) for (const run of this.#runsOf(jobId)) run.cancel();
      if (!this.#queue.isShared) return;
      // A renewal writes nothing where nothing runs.
      await this.writes.work();
      await this.#recount.freshValue();
    } catch (error) {
      this.writes.failed(error, 'the heartbeat of this node could not be written');
    }
  }

  #stopLost(lost: InputAttempt): void {
    const run = this.#runsOf(lost.jobId).find(({ lease }) => lease.inputIndex === lost.inputIndex);
    // The end of an input ends its lease, too. Until then it is lost at each renewal.
    if (run === undefined || run.state === 'ended' || run.abort.signal.aborted) return;
    this.#options.log.warn(idsOf(lost), 'a lease was lost');
    run.abort.abort(new Error('the lease was lost'));
  }

  #runsOf(jobId: string): readonly InputRun[] {
    return [...this.#runs].filter(({ lease }) => lease.jobId === jobId);
  }
}

function filterOf({ onlyJobs, withoutJobs, withoutCallers, withoutDependencies, onlySigners }: LeaseRequest): string {
  return JSON.stringify([onlyJobs, withoutJobs, withoutCallers, withoutDependencies, onlySigners]);
}

function unreadableRequest(lease: LeasedInput): FinishedInput {
  const { jobId, inputIndex } = lease;
  const entry = failedEntry(inputIndex, new AppError('INPUT_MET_BUG', { jobId, inputIndex }).toData());
  return { lease, entry, progress: NO_PROGRESS, digest: null };
}

function idsOf({ jobId, inputIndex, attempt }: InputAttempt) {
  return { job_id: jobId, input_index: inputIndex, attempt };
}
