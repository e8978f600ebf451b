import { extname } from 'node:path';
import { raceAbort } from '#concurrency/race-abort.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { Launcher } from '#processes/launcher.ts';
import { requireFitActions, requireFitAssertions } from './dry-run/assertion-rules.ts';
import type { CheckedAssertions } from './dry-run/dry-run-manifest.ts';
import { type CheckBudgets, type DryRunOutcome, DryRunWorker, type Refusal } from './dry-run/dry-run-process.ts';
import type { CustomAssertion, StatedAction } from './manifest-request.ts';

/** Has the extension of this module: in a build, both are JavaScript. */
const PROCESS_URL = new URL(`./dry-run/run-dry-runs${extname(import.meta.url)}`, import.meta.url);

/** Limits the requests that wait for their checks, each of which holds its body. A part is reserved for small ones. */
const MAX_PENDING_CHECKS = 256;
const MAX_PENDING_LARGE_CHECKS = 128;

/** Small checks get a second process when the first has a large check, or one batch has taken this time. */
const SECOND_PROCESS_DELAY_MS = 1_000;

/** An idle process is killed after this time, because the readers hold 150 MB. The next check waits half a second for a start. */
const IDLE_TIMEOUT_MS = 30_000;

/** Checks, before a job is made, that manifests can carry the assertions of a request. */
export interface AssertionChecker {
  /**
   * Throws an AppError of the code `VALIDATION_FAILED` with the field at fault where an assertion breaks a rule, where a
   * manifest signed with a throw-away key does not carry it unchanged, where a reader calls that manifest invalid, or where
   * the checks exceed their budget; the same for the actions. Throws `ASSERTION_CHECKS_BUSY` where too many requests wait.
   */
  checkAssertions(
    assertions: readonly CustomAssertion[],
    signal: AbortSignal,
    actions?: readonly StatedAction[],
  ): Promise<void>;
  /** Has further checks made in new processes, to which other files are hidden. */
  replaceProcesses(): void;
  /** Waits for pending checks and kills the processes. */
  close(): Promise<void>;
}

interface AssertionCheckerOptions {
  /** The module of the process; another one in tests. */
  readonly entry?: URL;
  readonly idleTimeoutMs?: number;
  readonly launcher?: Launcher;
  /** Limits of the checks of one request; lower in tests. */
  readonly budgets?: CheckBudgets;
}

/**
 * Creates a checker that makes dry-run signatures in child processes without key and secrets: the service never loads the
 * SDK, gets its memory back, and survives its crashes. One process takes the batches of all requests by turns; a second
 * one takes small checks only, while the first is busy with a large one.
 */
export function createAssertionChecker({
  entry = PROCESS_URL,
  idleTimeoutMs = IDLE_TIMEOUT_MS,
  launcher = new Launcher(),
  budgets,
}: AssertionCheckerOptions = {}): AssertionChecker {
  const scheduler = new CheckScheduler(() => new DryRunWorker({ entry, launcher, idleTimeoutMs }));
  return {
    async checkAssertions(assertions, signal, actions = []) {
      signal.throwIfAborted();
      if (assertions.length === 0 && actions.length === 0) return;
      const sizesBytes = requireFitAssertions(assertions);
      requireFitActions(actions, assertions);
      const batched = batchAssertions({ assertions, actions }, sizesBytes);
      await scheduler.run(new AssertionCheck(batched, budgets), signal);
    },
    replaceProcesses: () => scheduler.replaceProcesses(),
    close: () => scheduler.close(),
  };
}

/** Distributes the batches of pending checks to two dry-run workers. */
class CheckScheduler {
  readonly #queue = new CheckQueue<AssertionCheck>();
  readonly #general: DryRunWorker;
  readonly #small: DryRunWorker;
  /** True while the general worker has a batch that small checks should not wait for. */
  #isGeneralSlow = false;

  constructor(createWorker: () => DryRunWorker) {
    this.#general = createWorker();
    this.#small = createWorker();
  }

  async run(check: AssertionCheck, signal: AbortSignal): Promise<void> {
    this.#requireCapacity(check);
    this.#queue.add(check);
    this.#dispatch();
    try {
      await raceAbort(check.passed, signal);
    } finally {
      check.abandon();
      this.#queue.remove(check);
    }
  }

  replaceProcesses(): void {
    for (const worker of [this.#general, this.#small]) worker.replace();
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#queue.pending.map(({ passed }) => passed));
    await Promise.all([this.#general.close(), this.#small.close()]);
  }

  #requireCapacity({ isSmall }: AssertionCheck): void {
    const { pending } = this.#queue;
    const largeCount = pending.filter((other) => !other.isSmall).length;
    if (pending.length < MAX_PENDING_CHECKS && (isSmall || largeCount < MAX_PENDING_LARGE_CHECKS)) return;
    throw new AppError('ASSERTION_CHECKS_BUSY', {});
  }

  #dispatch(): void {
    if (!this.#general.isBusy) this.#beginGeneral(this.#queue.next());
    if (this.#isGeneralSlow && !this.#small.isBusy) void this.#begin(this.#small, this.#queue.nextSmall());
  }

  #beginGeneral(check: AssertionCheck | undefined): void {
    if (check === undefined) return;
    this.#isGeneralSlow = !check.isSmall;
    const slow = setTimeout(() => {
      this.#isGeneralSlow = true;
      this.#dispatch();
    }, SECOND_PROCESS_DELAY_MS);
    void this.#begin(this.#general, check, () => {
      clearTimeout(slow);
      this.#isGeneralSlow = false;
    });
  }

  async #begin(worker: DryRunWorker, check: AssertionCheck | undefined, onFinish?: () => void): Promise<void> {
    if (check === undefined) return;
    try {
      const { outcome, usedMs } = await worker.run(check.batch, check.remainingBudgets);
      check.record(outcome, usedMs);
    } catch (error) {
      check.fail(error);
    }
    onFinish?.();
    if (!check.isFinished) this.#queue.add(check);
    this.#dispatch();
  }
}

/**
 * Limits the assertions of a batch, which are checked in one manifest. The SDK's time to read a manifest grows with the
 * square of their number (2,000 take seconds), so batches keep the cost of a request linear: 100 take about 30 ms.
 */
const ASSERTION_BATCH_SIZE = 100;
/** Limits the data of a batch of several assertions, in bytes of JSON: 1 MiB takes about 0.15 s. */
const MAX_BATCH_BYTES = 1024 * 1024;
/** A request of one batch with at most this much data, in bytes of JSON, is small: it is checked within milliseconds. */
const MAX_SMALL_BYTES = 64 * 1024;

/** Consecutive assertions of a request; or its actions, with the assertions that they need. */
interface AssertionBatch extends CheckedAssertions {
  /** The index of the first assertion in the request. */
  readonly start: number;
}

/** The batches of one request, at least one. */
interface BatchedAssertions {
  readonly batches: readonly AssertionBatch[];
  /** True where checking them takes milliseconds. */
  readonly isSmall: boolean;
}

/** Divides the assertions and actions of a request into batches. `sizesBytes` are the sizes of the assertions' data as JSON. */
export function batchAssertions(
  { assertions, actions }: CheckedAssertions,
  sizesBytes: readonly number[],
): BatchedAssertions {
  const starts = [0];
  let batchBytes = 0;
  for (const [index, sizeBytes] of sizesBytes.entries()) {
    const start = starts.at(-1) ?? 0;
    if (index > start && (index - start === ASSERTION_BATCH_SIZE || batchBytes + sizeBytes > MAX_BATCH_BYTES)) {
      starts.push(index);
      batchBytes = 0;
    }
    batchBytes += sizeBytes;
  }
  const batches = starts.map((start, at) => ({
    start,
    assertions: assertions.slice(start, starts[at + 1]),
    actions: [],
  }));
  const ofActions = { start: 0, assertions: neededBy(actions, assertions), actions };
  return {
    batches: [...(assertions.length === 0 ? [] : batches), ...(actions.length === 0 ? [] : [ofActions])],
    isSmall: starts.length === 1 && batchBytes <= MAX_SMALL_BYTES && actions.length <= ASSERTION_BATCH_SIZE,
  };
}

/** Returns the assertions without which readers call actions invalid: those that a watermark is bound to. */
function neededBy(actions: readonly StatedAction[], assertions: readonly CustomAssertion[]): CustomAssertion[] {
  const isBound = actions.some(({ action }) => action === 'c2pa.watermarked.bound');
  return isBound ? assertions.filter(({ label }) => label === 'c2pa.soft-binding') : [];
}

/** Limits the checks of one request. 2,000 assertions, or 8 MiB of data, take about a second and 300 MB on an idle host. */
const CHECK_BUDGETS: CheckBudgets = { timeMs: 15_000, memoryBytes: 1024 ** 3 };

/** The check of one request's assertions, batch after batch. */
class AssertionCheck implements QueuedCheck {
  readonly isSmall: boolean;
  readonly #batches: readonly AssertionBatch[];
  readonly #budgets: CheckBudgets;
  readonly #passed = Promise.withResolvers<void>();
  #doneCount = 0;
  #usedMs = 0;
  #isFinished = false;

  constructor({ batches, isSmall }: BatchedAssertions, budgets: CheckBudgets = CHECK_BUDGETS) {
    this.#batches = batches;
    this.isSmall = isSmall;
    this.#budgets = budgets;
    // An abandoned check may fail unobserved.
    this.#passed.promise.catch(() => undefined);
  }

  get remainingBatches(): number {
    return this.#batches.length - this.#doneCount;
  }

  /** Resolves when every batch has passed. Rejects with the AppError of the first that did not. */
  get passed(): Promise<void> {
    return this.#passed.promise;
  }

  /** True when it has passed, has failed, or was abandoned. */
  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** The next batch. */
  get batch(): AssertionBatch {
    return itemAt(this.#batches, this.#doneCount);
  }

  /** The limits of the next batch. */
  get remainingBudgets(): CheckBudgets {
    return { ...this.#budgets, timeMs: Math.max(this.#budgets.timeMs - this.#usedMs, 1) };
  }

  /** Ends the check when nobody waits for it any more. */
  abandon(): void {
    this.#isFinished = true;
  }

  fail(error: unknown): void {
    this.#isFinished = true;
    this.#passed.reject(error);
  }

  /** Records the outcome of the next batch. */
  record(outcome: DryRunOutcome, usedMs: number): void {
    this.#usedMs += usedMs;
    const error = this.#errorOf(outcome);
    if (error !== null) return this.fail(error);
    this.#doneCount += 1;
    if (this.remainingBatches > 0) return;
    this.#isFinished = true;
    this.#passed.resolve();
  }

  #errorOf(outcome: DryRunOutcome): AppError | null {
    const { assertions } = this.batch;
    const only = assertions.length === 1 ? 0 : null;
    switch (outcome.kind) {
      case 'answered':
        return outcome.refusal === null ? null : this.#refused(outcome.refusal);
      case 'exceeded':
        return this.#exceeded(outcome.budget, only);
      case 'exited':
        // Assertions that crash the process must not be signed.
        return this.#refused({ index: only, problem: `the C2PA SDK did not survive them (${outcome.how})` });
    }
  }

  #refused({ index, problem }: Refusal): AppError {
    const label = index === null ? undefined : this.batch.assertions[index]?.label;
    if (this.batch.actions.length > 0) return new AppError('ACTIONS_REFUSED', { problem }, this.#locationOf(null));
    if (label === undefined) return new AppError('ASSERTIONS_REFUSED', { problem }, this.#locationOf(null));
    return new AppError('ASSERTION_DATA_REFUSED', { label, problem }, this.#locationOf(index));
  }

  #exceeded(budget: 'time' | 'memory', index: number | null): AppError {
    const [limit, unit] =
      budget === 'time' ? [this.#budgets.timeMs, 'ms' as const] : [this.#budgets.memoryBytes, 'bytes' as const];
    return new AppError('ASSERTIONS_TOO_COSTLY', { budget, limit, unit }, this.#locationOf(index));
  }

  #locationOf(index: number | null): { field: string } {
    if (this.batch.actions.length > 0) return { field: 'params.actions' };
    return { field: index === null ? 'params.assertions' : `params.assertions[${this.batch.start + index}].data` };
  }
}

/** The properties of a check that decide its order in the queue. */
interface QueuedCheck {
  readonly isSmall: boolean;
  readonly remainingBatches: number;
}

/**
 * Pending checks, handed out for one batch at a time. Alternates between the one with the fewest remaining batches and the
 * oldest one: small checks overtake large ones, and large ones are not starved.
 */
export class CheckQueue<Check extends QueuedCheck> {
  /** Pending checks in order of arrival; false while a batch of the check runs. */
  readonly #isWaiting = new Map<Check, boolean>();
  #isTurnOfOldest = false;

  /** Checks that wait or run, in order of arrival. */
  get pending(): Check[] {
    return [...this.#isWaiting.keys()];
  }

  /** Adds a new check, or one that has finished a batch. */
  add(check: Check): void {
    this.#isWaiting.set(check, true);
  }

  remove(check: Check): void {
    this.#isWaiting.delete(check);
  }

  /** Takes the next check; undefined where none waits. */
  next(): Check | undefined {
    const isTurnOfOldest = this.#isTurnOfOldest;
    this.#isTurnOfOldest = !isTurnOfOldest;
    const waiting = this.#waiting();
    if (!isTurnOfOldest) waiting.sort((first, second) => first.remainingBatches - second.remainingBatches);
    return this.#take(waiting[0]);
  }

  /** Takes the oldest small check; undefined where none waits. */
  nextSmall(): Check | undefined {
    return this.#take(this.#waiting().find(({ isSmall }) => isSmall));
  }

  #waiting(): Check[] {
    return this.pending.filter((check) => this.#isWaiting.get(check));
  }

  #take(check: Check | undefined): Check | undefined {
    if (check !== undefined) this.#isWaiting.set(check, false);
    return check;
  }
}
