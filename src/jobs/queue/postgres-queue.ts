import { raceAbort } from '#concurrency/race-abort.ts';
import type { ByteProgress } from '#operations/operation.ts';
import type { Log } from '#telemetry/logger.ts';
import type { JobReport } from '#telemetry/run-report.ts';
import type { JobScope } from '../caller.ts';
import type { InputAttempt } from '../job.ts';
import {
  cancelJob,
  cancelledAmong,
  isSameInput,
  recordResults,
  releaseInput,
  undoServiceExit,
} from '../store/finish-input.ts';
import type {
  Cancellation,
  FinishedInput,
  HandedIn,
  KnownJob,
  LeasedInput,
  NewJob,
  ReleasedInput,
} from '../store/job-store.ts';
import { leaseQueued, recordProgress, takeOverInput } from '../store/lease-inputs.ts';
import { Batcher } from '../store/postgres/batcher.ts';
import { HEARTBEAT_SECONDS, type JobMessage, MessageQueue } from '../store/postgres/message-queue.ts';
import { NotificationListener, NotificationPublisher } from '../store/postgres/notifications.ts';
import type { PostgresDatabase } from '../store/postgres/postgres-database.ts';
import { ANY_PRIORITIES, LeaseTurns } from '../store/priority.ts';
import { LeftOutGroups } from '../store/queue-state.ts';
import { submitJobs } from '../store/submit-job.ts';
import type { Database } from '../store/tables.ts';
import { updateJobs } from '../store/update-jobs.ts';
import { type JobQueue, type LeaseRequest, type NewLeases, QueueEvents, type Renewal } from './job-queue.ts';
import { LeaseTimer, leaseClock } from './lease-timer.ts';

/** The lease that a node relies on, shorter than the heartbeat timeout of its message by more than any pause of the process. */
const LEASE_MS = HEARTBEAT_SECONDS * 1000 - 2_000;

/** The least that is left of a lease when an output is committed. */
const MIN_LEASE_AT_COMMIT_MS = 3_000;

/** The interval of polling for job messages when no notification arrives, in milliseconds. */
const POLL_INTERVAL_MS = 2_000;

/** Bounds on submissions that share a transaction. The weight is the number of characters of their requests. */
const SUBMISSION_BATCHES = { maxSize: 64, maxWeight: 2 * 1024 * 1024, maxConcurrent: 2 };

/** Bounds on leases and results that share a transaction. The weight is the number of results. */
const EXCHANGE_BATCHES = { maxSize: 64, maxWeight: 64, maxConcurrent: 2 };

/** An input that this node leased, until it is handed in. */
interface HeldInput {
  readonly lease: LeasedInput;
  readonly message: JobMessage;
  readonly timer: LeaseTimer;
}

/** A lease or a result, which is written with others. */
type Exchange = { readonly request: LeaseRequest } | { readonly result: FinishedInput };

/**
 * The queue that several nodes share: a job message for each input, which pg-boss hands to one node, and deletes in the
 * transaction that records the result. The store's tables say what an input is and how it finished.
 */
export class PostgresQueue implements JobQueue {
  readonly isShared = true;
  readonly renewalIntervalMs = 2_000;
  readonly #database: PostgresDatabase;
  readonly #messages: MessageQueue;
  readonly #publisher: NotificationPublisher;
  readonly #listener: NotificationListener;
  readonly #polling: NodeJS.Timeout;
  readonly #events = new QueueEvents();
  readonly #clock = leaseClock();
  readonly #held = new Map<string, HeldInput>();
  readonly #leftOut = new LeftOutGroups();
  readonly #turns = new LeaseTurns();
  readonly #submissions = new Batcher((jobs: readonly NewJob[]) => this.#submitAll(jobs), SUBMISSION_BATCHES);
  readonly #exchanges = new Batcher((batch: readonly Exchange[]) => this.#exchangeAll(batch), EXCHANGE_BATCHES);

  private constructor(database: PostgresDatabase, messages: MessageQueue, url: string, log: Log) {
    this.#database = database;
    this.#messages = messages;
    this.#publisher = new NotificationPublisher(database, log);
    this.#listener = new NotificationListener(url, log, (event) => this.#events.push(event));
    this.#polling = setInterval(() => this.#events.push({ type: 'work' }), POLL_INTERVAL_MS).unref();
  }

  static async open(database: PostgresDatabase, url: string, log: Log): Promise<PostgresQueue> {
    return new PostgresQueue(database, await MessageQueue.open(database, log), url, log);
  }

  get events(): ReadableStream {
    return this.#events.stream;
  }

  submitJob(job: NewJob): Promise<KnownJob | null> {
    return this.#submissions.call(job, JSON.stringify(job.request).length);
  }

  async cancelJob(jobId: string, scope?: JobScope): Promise<Cancellation | null> {
    const cancellation = await this.#database.transaction((db) => cancelJob(db, jobId, scope));
    if (!cancellation?.changed) return cancellation;
    this.#events.push({ type: 'cancelled', jobId });
    this.#publisher.publish({ type: cancellation.finishedJob !== null ? 'finished' : 'cancelled', jobId });
    return cancellation;
  }

  lease(request: LeaseRequest): Promise<NewLeases> {
    return this.#exchanges.call({ request }, 0);
  }

  async renew(running: readonly (InputAttempt & ByteProgress)[]): Promise<Renewal> {
    const lost = await this.#renewMessages(running);
    const jobIds = [...new Set(running.map(({ jobId }) => jobId))];
    const cancelledJobs = await this.#database.read((db) => cancelledAmong(db, jobIds));
    if (running.length > 0) await this.#database.transaction((db) => recordProgress(db, running));
    return { lost, cancelledJobs };
  }

  async mayCommit(lease: InputAttempt, signal: AbortSignal): Promise<boolean> {
    const timer = this.#held.get(keyOf(lease))?.timer;
    if (timer === undefined) return false;
    // An abort ends the loop; `renewed` never rejects.
    while (!signal.aborted && !timer.covers(MIN_LEASE_AT_COMMIT_MS))
      await raceAbort(timer.renewed, signal).catch(() => undefined);
    return !signal.aborted;
  }

  async finish(result: FinishedInput): Promise<HandedIn> {
    const { isLate, finishedJobs } = await this.#exchanges.call({ result }, 1);
    this.#held.delete(keyOf(result.lease));
    return { input: isLate ? 'late' : 'finished', finishedJob: finishedJobs[0] ?? null };
  }

  async release(input: ReleasedInput): Promise<HandedIn> {
    const handedIn = await this.#database.transaction((db) => this.#release(db, input));
    this.#held.delete(keyOf(input.lease));
    if (handedIn.finishedJob !== null) this.#publishFinished([handedIn.finishedJob]);
    if (handedIn.input === 'queued') this.#announceWork();
    return handedIn;
  }

  /** Stops the listener and the supervision of messages. Nothing is leased ahead. */
  async close(): Promise<void> {
    clearInterval(this.#polling);
    await this.#listener.close();
    await this.#messages.close();
    await this.#publisher.close();
    this.#events.close();
  }

  #announceWork(): void {
    this.#events.push({ type: 'work' });
    this.#publisher.publish({ type: 'work' });
  }

  #publishFinished(jobs: readonly JobReport[]): void {
    for (const { jobId } of jobs) this.#publisher.publish({ type: 'finished', jobId });
  }

  async #submitAll(jobs: readonly NewJob[]): Promise<readonly (KnownJob | null)[]> {
    const answers = await this.#database.transaction(async (db) => {
      const submitted = await submitJobs(db, jobs);
      await this.#messages.send(db, submitted.queued);
      return submitted.answers;
    });
    if (answers.includes(null)) this.#announceWork();
    return answers;
  }

  async #renewMessages(running: readonly InputAttempt[]): Promise<readonly InputAttempt[]> {
    const held = running.flatMap((lease) => this.#held.get(keyOf(lease)) ?? []);
    const askedAtMs = this.#clock();
    const expired = new Set(await this.#messages.renew(held.map(({ message }) => message)));
    for (const { message, timer } of held) if (!expired.has(message)) timer.renew(askedAtMs);
    // One that was handed in meanwhile has no message any more.
    const isLost = ({ message, lease }: HeldInput) => expired.has(message) && this.#held.has(keyOf(lease));
    return held.filter(isLost).map(({ lease }) => lease);
  }

  async #exchangeAll(batch: readonly Exchange[]): Promise<readonly (NewLeases & { readonly isLate: boolean })[]> {
    const askedAtMs = this.#clock();
    const answers = await this.#database.transaction((db) => this.#exchange(db, batch));
    for (const { finishedJobs, taken } of answers) {
      this.#publishFinished(finishedJobs);
      for (const { lease, message } of taken) {
        const timer = new LeaseTimer(this.#clock, askedAtMs, LEASE_MS);
        this.#held.set(keyOf(lease), { lease, message, timer });
      }
    }
    return answers.map(({ taken, ...others }) => ({ ...others, inputs: taken.map(({ lease }) => lease) }));
  }

  /** Writes leases and results. Statements are for all of them together, because every statement costs a round trip. */
  async #exchange(db: Database, batch: readonly Exchange[]) {
    const received = [];
    for (const exchange of batch) received.push('request' in exchange ? await this.#receive(db, exchange.request) : []);
    const { leased, starts } = await leaseQueued(db, received.flat(), 'running');
    const results = batch.flatMap((exchange) => ('result' in exchange ? [exchange.result] : []));
    const recorded = await recordResults(db, results);
    const finished = await updateJobs(db, [...starts, ...recorded]);
    const isLate = ({ lease }: FinishedInput) => !recorded.some((one) => isSameInput(one, lease));
    await this.#deleteMessages(
      db,
      results.filter((result) => !isLate(result)).map(({ lease }) => lease),
    );
    const answers = [];
    for (const [index, exchange] of batch.entries()) {
      const { taken, finishedJobs } = await this.#takeAll(db, received[index] ?? [], leased);
      const result = 'result' in exchange ? exchange.result : null;
      if (result !== null && isLate(result)) await undoServiceExit(db, result.lease);
      // The end of a job is reported with one of its inputs.
      const report = finished.get(result?.lease.jobId ?? '');
      if (report !== undefined && finished.delete(report.jobId)) finishedJobs.push(report);
      answers.push({ taken, isLate: result !== null && isLate(result), finishedJobs });
    }
    return answers;
  }

  async #receive(db: Database, request: LeaseRequest): Promise<readonly JobMessage[]> {
    const excluded = await this.#leftOut.of(db, request);
    if (excluded === null) return [];
    // To find no message of low priority of another caller takes a scan of all messages.
    const maxPriorities = request.withoutCallers.length > 0 ? ANY_PRIORITIES : this.#turns.next();
    return this.#messages.fetch(db, request.count, excluded, maxPriorities);
  }

  /** Returns the leases of received messages; takes over the inputs that were not queued, and deletes messages of finished ones. */
  async #takeAll(db: Database, messages: readonly JobMessage[], leased: readonly LeasedInput[]) {
    const taken: { readonly lease: LeasedInput; readonly message: JobMessage }[] = [];
    const finishedJobs: JobReport[] = [];
    for (const message of messages) {
      const queued = leased.find((lease) => isSameInput(lease, message));
      const { lease, finishedJob } = queued ? { lease: queued, finishedJob: null } : await takeOverInput(db, message);
      if (finishedJob !== null) finishedJobs.push(finishedJob);
      if (lease === null) await this.#messages.delete(db, [message]);
      else taken.push({ lease, message });
    }
    return { taken, finishedJobs };
  }

  async #deleteMessages(db: Database, leases: readonly InputAttempt[]): Promise<void> {
    await this.#messages.delete(
      db,
      leases.flatMap((lease) => this.#held.get(keyOf(lease))?.message ?? []),
    );
  }

  /** Queues an input again with its message, or finishes it. A late lease is another node's by now. */
  async #release(db: Database, input: ReleasedInput): Promise<HandedIn> {
    const { lease, reason } = input;
    // Its message has the pause.
    const handedIn = await releaseInput(db, input, 'queued');
    const retryAt = 'retryAt' in input ? input.retryAt : null;
    const held = this.#held.get(keyOf(lease));
    if (handedIn.input === 'late') await undoServiceExit(db, lease);
    else if (handedIn.input === 'finished') await this.#deleteMessages(db, [lease]);
    else if (held !== undefined) {
      const { priority, needs } = held.lease;
      const queued = { priority, needs: reason === 'outage' ? input.needs : needs };
      await this.#messages.requeue(db, held.message, queued, Math.max(0, (retryAt ?? 0) - Date.now()));
    }
    return handedIn;
  }
}

function keyOf({ jobId, inputIndex, attempt }: InputAttempt): string {
  return `${jobId} ${inputIndex} ${attempt}`;
}
