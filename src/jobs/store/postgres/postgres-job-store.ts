import type { Log } from '#telemetry/logger.ts';
import type { InputAttempt } from '../../job.ts';
import { type FinishedInput, recordProcessExit, recordTransientFailure, requeueInput } from '../finish-input.ts';
import type { InputEnd, InputId, InputLease, JobStore, KnownJob, NewJob } from '../job-store.ts';
import { leaseAndComplete } from '../lease-and-complete.ts';
import { leaseInput, type NewLease } from '../lease-inputs.ts';
import { jobsOfSameCallers, otherJobs } from '../queue-state.ts';
import { type MethodOnDatabase, read, type StoreMethod, storeMethods, write } from '../store-methods.ts';
import { submitJobs } from '../submit-job.ts';
import type { Database } from '../tables.ts';
import { Batcher } from './batcher.ts';
import { type JobMessage, MessageQueue } from './message-queue.ts';
import { recordHeartbeat, registerNode, removeNode } from './node-records.ts';
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
export interface CompletedMessage extends FinishedInput {
  readonly message: JobMessage;
}

/** The effects of `MessageMethods.leaseAndComplete`. */
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

/** The methods for nodes that need nothing but the database. */
const nodeMethods = {
  jobsOfSameCallers: read(jobsOfSameCallers),
  otherJobs: read(otherJobs),
  recordHeartbeat: write(recordHeartbeat),
  registerNode: write(registerNode),
  removeNode: write(removeNode),
};

/** Methods with their database: they run each call as one read or one transaction. */
type Bound<Methods> = {
  readonly [M in keyof Methods]: Methods[M] extends MethodOnDatabase<infer Arguments, infer Result>
    ? (...args: Arguments) => Promise<Result>
    : never;
};

function bind<Methods extends object>(database: PostgresDatabase, methods: Methods): Bound<Methods> {
  const bound = Object.entries(methods as Record<string, MethodOnDatabase<unknown[], unknown>>).map(
    ([name, { access, run }]) => [
      name,
      (...args: unknown[]) =>
        access === 'read' ? database.read((db) => run(db, ...args)) : database.transaction((db) => run(db, ...args)),
    ],
  );
  return Object.fromEntries(bound) as Bound<Methods>;
}

/** The methods that write job records and job messages in one transaction. */
interface MessageMethods {
  /**
   * Records results, deletes their messages, and receives up to `count` messages of other jobs than the excluded ones, whose
   * inputs it leases when they are queued. All in one transaction.
   */
  leaseAndComplete(
    completed: readonly CompletedMessage[],
    count: number,
    excludedJobs: readonly string[],
  ): Promise<MessageExchange>;

  /**
   * Leases the input of a received message that was not queued: it was lost by another node, is cancelled, or has finished.
   * Resolves with null when the message has expired meanwhile, and belongs to another node.
   */
  takeOver(message: JobMessage): Promise<InputLease | null>;

  /**
   * Releases an input without a result: queues it again with its message, or finishes it. `isLost` says that the message
   * expired while the worker was alive, because the database could not be reached; then the input is another node's.
   */
  releaseInput(message: JobMessage, lease: InputAttempt, reason: ReleaseReason, isLost: boolean): Promise<InputEnd>;

  /** Renews the leases of messages, and returns those that had expired. */
  renew(messages: readonly JobMessage[]): Promise<readonly JobMessage[]>;
}

/**
 * The store that several nodes share. It notifies the other nodes after the commit. Its methods beyond `JobStore` are for the
 * dispatcher of a node.
 */
export interface PostgresJobStore extends JobStore, MessageMethods, Bound<typeof nodeMethods> {}

/** Opens the database and its message queue. Throws an AppError of the catalogue when they cannot be used. */
export async function openPostgresStore(url: string, maxConnections: number, log: Log): Promise<PostgresJobStore> {
  const database = await openPostgres(url, maxConnections);
  try {
    const messages = await MessageQueue.open(database, log);
    log.info({ database: database.address }, 'job database opened');
    return storeOf(database, messages, new NotificationPublisher(database, log));
  } catch (error) {
    await database.close();
    throw error;
  }
}

function storeOf(
  database: PostgresDatabase,
  messages: MessageQueue,
  publisher: NotificationPublisher,
): PostgresJobStore {
  const methods = bind(database, storeMethods);
  const submissions = new Batcher<NewJob, KnownJob | null>(async (jobs) => {
    const known = await database.transaction((db) => submitWithMessages(db, messages, jobs));
    if (known.includes(null)) publisher.publish({ type: 'queued' });
    return known;
  }, SUBMISSION_BATCHES);
  const store: PostgresJobStore = {
    ...methods,
    ...bind(database, nodeMethods),
    ...notifying(methods, publisher),
    ...messageMethods(database, messages, publisher),
    submitJob: (job) => submissions.call(job, JSON.stringify(job.request).length),
    // Its commits need not be shared, and results are batched by `leaseAndComplete`.
    batched: () => store,
    close: async () => {
      await messages.close();
      await publisher.close();
      await database.close();
    },
  };
  return store;
}

async function submitWithMessages(
  db: Database,
  messages: MessageQueue,
  jobs: readonly NewJob[],
): Promise<readonly (KnownJob | null)[]> {
  const answers = await submitJobs(db, jobs);
  const added = jobs.filter((_, index) => answers[index] === null);
  await messages.send(
    db,
    added.map(({ jobId, sync, request }) => ({ jobId, sync, inputCount: request.inputs.length })),
  );
  return answers;
}

/** Returns the methods after which other nodes are notified. */
function notifying(methods: Pick<JobStore, StoreMethod>, publisher: NotificationPublisher) {
  const released =
    <Rest extends readonly unknown[]>(release: (lease: InputAttempt, ...rest: Rest) => Promise<InputEnd>) =>
    async (lease: InputAttempt, ...rest: Rest): Promise<InputEnd> => {
      const end = await release(lease, ...rest);
      publisher.publishRelease(lease.jobId, end);
      return end;
    };
  return {
    finishInput: released(methods.finishInput),
    requeueInput: released(methods.requeueInput),
    recordProcessExit: released(methods.recordProcessExit),
    leaseInput: async (input) => {
      const answer = await methods.leaseInput(input);
      if (answer.lease === null) publisher.publishEnd(input.jobId, answer);
      return answer;
    },
    cancelJob: async (jobId, scope) => {
      const cancellation = await methods.cancelJob(jobId, scope);
      if (cancellation?.changed) publisher.publish({ type: cancellation.jobFinished ? 'ended' : 'cancelled', jobId });
      return cancellation;
    },
  } satisfies Partial<JobStore>;
}

function messageMethods(
  database: PostgresDatabase,
  messages: MessageQueue,
  publisher: NotificationPublisher,
): MessageMethods {
  return {
    leaseAndComplete: async (completed, count, excludedJobs) => {
      const exchange = await database.transaction((db) =>
        exchangeMessages(db, messages, completed, count, excludedJobs),
      );
      for (const one of exchange.completed) publisher.publishEnd(one.jobId, one);
      return exchange;
    },
    takeOver: async (message) => {
      const answer = await database.transaction((db) => takeOver(db, messages, message));
      if (answer?.lease === null) publisher.publishEnd(message.jobId, answer);
      return answer;
    },
    releaseInput: async (message, lease, reason, isLost) => {
      const end = await database.transaction(async (db) => {
        const released = await release(db, lease, reason);
        if (isLost) return released;
        const delayMs = reason.type === 'transient-failure' ? reason.retryDelayMs : 0;
        if (released.input === 'queued') await messages.requeue(db, message, delayMs);
        else await messages.delete(db, [message]);
        return released;
      });
      publisher.publishRelease(lease.jobId, end);
      return end;
    },
    renew: (leased) => messages.renew(leased),
  };
}

async function exchangeMessages(
  db: Database,
  queue: MessageQueue,
  completed: readonly CompletedMessage[],
  count: number,
  excludedJobs: readonly string[],
): Promise<MessageExchange> {
  const { messages, more } = count > 0 ? await queue.fetch(db, count, excludedJobs) : { messages: [], more: false };
  const wanted = messages.map(({ jobId, inputIndex }) => ({ jobId, inputIndex }));
  const done = await leaseAndComplete(db, completed, wanted);
  const recorded = completed.filter(({ lease }) => done.completed.some((one) => isSameInput(one, lease)));
  await queue.delete(
    db,
    recorded.map(({ message }) => message),
  );
  const received = messages.map((message) => ({
    message,
    leased: done.leased.find(({ lease }) => isSameInput(lease, message)) ?? null,
  }));
  return { received, completed: done.completed, more };
}

async function takeOver(db: Database, messages: MessageQueue, message: JobMessage): Promise<InputLease | null> {
  if (!(await messages.touch(db, message))) return null;
  const lease = await leaseInput(db, { jobId: message.jobId, inputIndex: message.inputIndex });
  if (lease.lease === null) await messages.delete(db, [message]);
  return lease;
}

async function release(db: Database, lease: InputAttempt, reason: ReleaseReason): Promise<InputEnd> {
  if (reason.type === 'process-exited') return recordProcessExit(db, lease, reason.exitCause);
  if (reason.type === 'transient-failure') await recordTransientFailure(db, lease);
  return requeueInput(db, lease);
}

function isSameInput(one: InputId, other: InputId): boolean {
  return one.jobId === other.jobId && one.inputIndex === other.inputIndex;
}
