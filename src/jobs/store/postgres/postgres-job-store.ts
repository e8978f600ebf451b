import type { Log } from '#telemetry/logger.ts';
import type { JobScope } from '../../caller.ts';
import type { ByteProgress, InputAttempt } from '../../job.ts';
import type { ResultEntry } from '../../result-entries.ts';
import { closeCallback, leaseCallbacks, postponeCallback } from '../callbacks.ts';
import { findRequest, findRetriedJob } from '../find-request.ts';
import {
  cancelJob,
  cancelledAmong,
  finishInput,
  recordProcessExit,
  recordTransientFailure,
  requeueInput,
  undoServiceExit,
} from '../finish-input.ts';
import type {
  InputEnd,
  InputId,
  InputLease,
  JobFilter,
  JobStore,
  KnownJob,
  LeaseCounts,
  NewJob,
} from '../job-store.ts';
import { leaseInput, leaseInputs, recoverLeases, requestOfJob, startReservedInput } from '../lease-inputs.ts';
import { probeWrite, pruneJobs } from '../maintenance.ts';
import { pathsOfJob, releaseOutputPaths, reserveOutputPath } from '../output-paths.ts';
import { countQueued, jobsOfSameCallers, otherJobs, queuedJobs, queueState, recordProgress } from '../queue-state.ts';
import {
  findJob,
  finishedAmong,
  finishedInputs,
  jobReport,
  listJobs,
  recentJobs,
  resultEntries,
} from '../read-jobs.ts';
import { findByIdempotencyKey, submitJobs } from '../submit-job.ts';
import { Batcher } from './batcher.ts';
import { type CompletedInput, leaseAndComplete, type NewLease } from './lease-and-complete.ts';
import { type JobMessage, MessageQueue } from './message-queue.ts';
import { type NodeRecord, recordHeartbeat, registerNode, removeNode, type SeenNode } from './node-records.ts';
import { NotificationPublisher } from './notifications.ts';
import { openPostgres, type PostgresDatabase } from './postgres-database.ts';

/** Bounds on submissions that share a transaction. The weight is the number of characters of their requests. */
const SUBMISSION_BATCHES = { maxSize: 64, maxWeight: 2 * 1024 * 1024, maxConcurrent: 2 };

/** A job message that this node received, with the lease of its input; null when the input was not queued. */
export interface ReceivedMessage {
  readonly message: JobMessage;
  readonly leased: NewLease | null;
}

/** A result to be recorded, with the message of its input. */
export interface CompletedMessage extends CompletedInput {
  readonly message: JobMessage;
}

/** The effects of `PostgresJobStore.leaseAndComplete`. */
export interface MessageExchange {
  readonly received: readonly ReceivedMessage[];
  /** The recorded results. An input that is missing was late. */
  readonly completed: readonly (InputId & { readonly jobFinished: boolean })[];
  /** True when there may be more messages. */
  readonly more: boolean;
}

/** The reason why an input is released without a result. */
export type ReleaseReason =
  | { readonly type: 'stopped' }
  | { readonly type: 'process-exited'; readonly exitCause: string }
  | { readonly type: 'transient-failure'; readonly retryDelayMs: number };

/**
 * The store that several nodes share. It writes job records and job messages in one transaction, and notifies the other nodes
 * after the commit. Its methods beyond `JobStore` are for the dispatcher of a node.
 */
export class PostgresJobStore implements JobStore {
  readonly #database: PostgresDatabase;
  readonly #messages: MessageQueue;
  readonly #publisher: NotificationPublisher;
  readonly #submissions = new Batcher<NewJob, KnownJob | null>((jobs) => this.#submitBatch(jobs), SUBMISSION_BATCHES);

  constructor(database: PostgresDatabase, messages: MessageQueue, log: Log) {
    this.#database = database;
    this.#messages = messages;
    this.#publisher = new NotificationPublisher(database, log);
  }

  /** Opens the database and its message queue. Throws an AppError of the catalogue when they cannot be used. */
  static async open(url: string, maxConnections: number, log: Log): Promise<PostgresJobStore> {
    const database = await openPostgres(url, maxConnections);
    try {
      const messages = await MessageQueue.open(database, log);
      log.info({ database: database.address }, 'job database opened');
      return new PostgresJobStore(database, messages, log);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  submitJob(job: NewJob) {
    return this.#submissions.call(job, JSON.stringify(job.request).length);
  }

  async #submitBatch(jobs: readonly NewJob[]): Promise<readonly (KnownJob | null)[]> {
    const known = await this.#database.transaction(async (db) => {
      const answers = await submitJobs(db, jobs);
      const added = jobs.filter((_, index) => answers[index] === null);
      await this.#messages.send(
        db,
        added.map(({ jobId, sync, request }) => ({ jobId, sync, inputCount: request.inputs.length })),
      );
      return answers;
    });
    if (known.includes(null)) this.#publisher.publish({ type: 'queued' });
    return known;
  }

  findByIdempotencyKey(key: string) {
    return this.#database.read((db) => findByIdempotencyKey(db, key));
  }

  findJob(jobId: string, scope?: JobScope) {
    return this.#database.read((db) => findJob(db, jobId, scope));
  }

  findRetriedJob(jobId: string, scope?: JobScope) {
    return this.#database.read((db) => findRetriedJob(db, jobId, scope));
  }

  findRequest(jobId: string, scope?: JobScope) {
    return this.#database.read((db) => findRequest(db, jobId, scope));
  }

  listJobs(filter: JobFilter) {
    return this.#database.read((db) => listJobs(db, filter));
  }

  recentJobs(since: Date, limit: number) {
    return this.#database.read((db) => recentJobs(db, since, limit));
  }

  async cancelJob(jobId: string, scope?: JobScope) {
    const cancellation = await this.#database.transaction((db) => cancelJob(db, jobId, scope));
    if (cancellation?.changed)
      this.#publisher.publish({ type: cancellation.jobFinished ? 'ended' : 'cancelled', jobId });
    return cancellation;
  }

  finishedAmong(jobIds: readonly string[]) {
    return this.#database.read((db) => finishedAmong(db, jobIds));
  }

  cancelledAmong(jobIds: readonly string[]) {
    return this.#database.read((db) => cancelledAmong(db, jobIds));
  }

  finishedInputs(jobId: string) {
    return this.#database.read((db) => finishedInputs(db, jobId));
  }

  resultEntries(jobId: string, inputIndexes: readonly number[], scope?: JobScope) {
    return this.#database.read((db) => resultEntries(db, jobId, inputIndexes, scope));
  }

  jobReport(jobId: string) {
    return this.#database.read((db) => jobReport(db, jobId));
  }

  pruneJobs(finishedBefore: Date) {
    return this.#database.transaction((db) => pruneJobs(db, finishedBefore));
  }

  queuedJobs() {
    return this.#database.read((db) => queuedJobs(db));
  }

  leaseInputs(jobId: string, counts: LeaseCounts) {
    return this.#database.transaction((db) => leaseInputs(db, jobId, counts));
  }

  async leaseInput(input: InputId): Promise<InputLease> {
    const answer = await this.#database.transaction((db) => leaseInput(db, input));
    if (answer.lease === null) this.#publishEnd(input.jobId, answer);
    return answer;
  }

  startReservedInput(lease: InputAttempt) {
    return this.#database.transaction((db) => startReservedInput(db, lease));
  }

  requestOfJob(jobId: string) {
    return this.#database.read((db) => requestOfJob(db, jobId));
  }

  pathsOfJob(jobId: string) {
    return this.#database.read((db) => pathsOfJob(db, jobId));
  }

  recordProgress(running: readonly (InputAttempt & ByteProgress)[]) {
    return this.#database.transaction((db) => recordProgress(db, running));
  }

  async finishInput(lease: InputAttempt, entry: ResultEntry, progress: ByteProgress, digest: string | null = null) {
    const end = await this.#database.transaction((db) => finishInput(db, lease, entry, progress, digest));
    this.#publishEnd(lease.jobId, end);
    return end;
  }

  async requeueInput(lease: InputAttempt) {
    const end = await this.#database.transaction((db) => requeueInput(db, lease));
    this.#publishRelease(lease.jobId, end);
    return end;
  }

  recordTransientFailure(lease: InputAttempt) {
    return this.#database.transaction((db) => recordTransientFailure(db, lease));
  }

  async recordProcessExit(lease: InputAttempt, exitCause: string) {
    const end = await this.#database.transaction((db) => recordProcessExit(db, lease, exitCause));
    this.#publishRelease(lease.jobId, end);
    return end;
  }

  undoServiceExit(lease: InputAttempt) {
    return this.#database.transaction((db) => undoServiceExit(db, lease));
  }

  recoverLeases() {
    return this.#database.transaction((db) => recoverLeases(db));
  }

  reserveOutputPath(lease: InputAttempt, path: string) {
    return this.#database.transaction((db) => reserveOutputPath(db, lease, path));
  }

  releaseOutputPaths(lease: InputAttempt) {
    return this.#database.transaction((db) => releaseOutputPaths(db, lease));
  }

  leaseCallbacks(count: number, leaseMs: number) {
    return this.#database.transaction((db) => leaseCallbacks(db, count, leaseMs));
  }

  postponeCallback(jobId: string, pauseMs: number, was: 'sent' | 'unsent') {
    return this.#database.transaction((db) => postponeCallback(db, jobId, pauseMs, was));
  }

  closeCallback(jobId: string, state: 'delivered' | 'given_up') {
    return this.#database.transaction((db) => closeCallback(db, jobId, state));
  }

  countQueued() {
    return this.#database.read((db) => countQueued(db));
  }

  queueState() {
    return this.#database.read((db) => queueState(db));
  }

  probeWrite() {
    return this.#database.transaction((db) => probeWrite(db));
  }

  /** Returns this store: its commits need not be shared, and results are batched by `leaseAndComplete`. */
  batched(): JobStore {
    return this;
  }

  /**
   * Records results, deletes their messages, and receives up to `count` messages of other jobs than the excluded ones, whose
   * inputs it leases when they are queued. All in one transaction.
   */
  async leaseAndComplete(
    completed: readonly CompletedMessage[],
    count: number,
    excludedJobs: readonly string[],
  ): Promise<MessageExchange> {
    const exchange = await this.#database.transaction(async (db) => {
      const fetched = count > 0 ? await this.#messages.fetch(db, count, excludedJobs) : { messages: [], more: false };
      const { messages, more } = fetched;
      const wanted = messages.map(({ jobId, inputIndex }) => ({ jobId, inputIndex }));
      const done = await leaseAndComplete(db, completed, wanted);
      const recorded = completed.filter(({ lease }) => done.completed.some((one) => isSameInput(one, lease)));
      await this.#messages.delete(
        db,
        recorded.map(({ message }) => message),
      );
      const received = messages.map((message) => ({
        message,
        leased: done.leased.find(({ lease }) => isSameInput(lease, message)) ?? null,
      }));
      return { received, completed: done.completed, more };
    });
    for (const one of exchange.completed) this.#publishEnd(one.jobId, one);
    return exchange;
  }

  /**
   * Leases the input of a received message that was not queued: it was lost by another node, is cancelled, or has finished.
   * Resolves with null when the message has expired meanwhile, and belongs to another node.
   */
  async takeOver(message: JobMessage): Promise<InputLease | null> {
    const answer = await this.#database.transaction(async (db) => {
      if (!(await this.#messages.touch(db, message))) return null;
      const lease = await leaseInput(db, { jobId: message.jobId, inputIndex: message.inputIndex });
      if (lease.lease === null) await this.#messages.delete(db, [message]);
      return lease;
    });
    if (answer?.lease === null) this.#publishEnd(message.jobId, answer);
    return answer;
  }

  /**
   * Releases an input without a result: queues it again with its message, or finishes it. `isLost` says that the message
   * expired while the worker was alive, because the database could not be reached; then the input is another node's.
   */
  async releaseInput(
    message: JobMessage,
    lease: InputAttempt,
    reason: ReleaseReason,
    isLost: boolean,
  ): Promise<InputEnd> {
    const end = await this.#database.transaction(async (db) => {
      if (reason.type === 'transient-failure') await recordTransientFailure(db, lease);
      const released =
        reason.type === 'process-exited'
          ? await recordProcessExit(db, lease, reason.exitCause)
          : await requeueInput(db, lease);
      if (isLost) return released;
      const delayMs = reason.type === 'transient-failure' ? reason.retryDelayMs : 0;
      if (released.input === 'queued') await this.#messages.requeue(db, message, delayMs);
      else await this.#messages.delete(db, [message]);
      return released;
    });
    this.#publishRelease(lease.jobId, end);
    return end;
  }

  /**
   * Returns these jobs and all unfinished jobs of the same named callers; null when there are more than 10,000. A node
   * excludes them while it serves callers that have nothing running.
   */
  jobsOfSameCallers(jobIds: readonly string[]): Promise<readonly string[] | null> {
    return this.#database.read((db) => jobsOfSameCallers(db, jobIds));
  }

  /** Returns all other unfinished jobs; null when there are more than 10,000. */
  otherJobs(jobIds: readonly string[]): Promise<readonly string[] | null> {
    return this.#database.read((db) => otherJobs(db, jobIds));
  }

  /** Renews the leases of messages, and returns those that had expired. */
  renew(messages: readonly JobMessage[]): Promise<readonly JobMessage[]> {
    return this.#messages.renew(messages);
  }

  /** Records a node that starts, unless `mayJoin` refuses, and returns the others that were seen within `expiryMs`. */
  registerNode(
    node: NodeRecord,
    expiryMs: number,
    mayJoin: (others: readonly SeenNode[]) => boolean,
  ): Promise<readonly SeenNode[]> {
    return this.#database.transaction((db) => registerNode(db, node, expiryMs, mayJoin));
  }

  /** Records that a node is alive. */
  recordHeartbeat(node: NodeRecord): Promise<void> {
    return this.#database.transaction((db) => recordHeartbeat(db, node));
  }

  /** Deletes the record of a node that stops. */
  removeNode(node: NodeRecord): Promise<void> {
    return this.#database.transaction((db) => removeNode(db, node));
  }

  async close(): Promise<void> {
    await this.#messages.close();
    await this.#publisher.close();
    await this.#database.close();
  }

  #publishRelease(jobId: string, end: InputEnd): void {
    if (end.input === 'queued') this.#publisher.publish({ type: 'queued' });
    this.#publishEnd(jobId, end);
  }

  #publishEnd(jobId: string, { jobFinished }: { readonly jobFinished: boolean }): void {
    if (jobFinished) this.#publisher.publish({ type: 'ended', jobId });
  }
}

function isSameInput(one: InputId, other: InputId): boolean {
  return one.jobId === other.jobId && one.inputIndex === other.inputIndex;
}
