import { extname } from 'node:path';
import { raceAbort } from '#concurrency/race-abort.ts';
import { Semaphore } from '#concurrency/semaphore.ts';
import { AppError } from '#errors/app-error.ts';
import { Launcher } from '#processes/launcher.ts';
import { requireFitActions, requireFitAssertions } from './dry-run/assertion-rules.ts';
import type { CheckedAssertions } from './dry-run/dry-run-manifest.ts';
import { type CheckBudgets, type DryRun, DryRunWorker, type Refusal } from './dry-run/dry-run-process.ts';
import type { CustomAssertion, StatedAction } from './manifest-request.ts';

/** Has the extension of this module: in a build, both are JavaScript. */
const PROCESS_URL = new URL(`./dry-run/run-dry-runs${extname(import.meta.url)}`, import.meta.url);

/** Limits the requests that wait for their checks, each of which holds its body. A part is reserved for small ones. */
const MAX_PENDING_CHECKS = 256;
const MAX_PENDING_LARGE_CHECKS = 128;

/** Small checks get a second process when a batch in the first keeps them waiting for this time. */
const SECOND_PROCESS_DELAY_MS = 1_000;

/** Limits the checks of one request. 2,000 assertions, or 8 MiB of data, take about a second and 300 MB on an idle host. */
const CHECK_BUDGETS: CheckBudgets = { timeMs: 15_000, memoryBytes: 1024 ** 3 };

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
 * SDK, gets its memory back, and survives its crashes. One process takes the batches of all requests by turns, large checks
 * one at a time; a second one takes small checks only, while a batch in the first takes long.
 */
export function createAssertionChecker({
  entry = PROCESS_URL,
  idleTimeoutMs = IDLE_TIMEOUT_MS,
  launcher = new Launcher(),
  budgets = CHECK_BUDGETS,
}: AssertionCheckerOptions = {}): AssertionChecker {
  const scheduler = new CheckScheduler(() => new DryRunWorker({ entry, launcher, idleTimeoutMs }), budgets);
  return {
    async checkAssertions(assertions, signal, actions = []) {
      signal.throwIfAborted();
      if (assertions.length === 0 && actions.length === 0) return;
      const sizesBytes = requireFitAssertions(assertions);
      requireFitActions(actions, assertions);
      await scheduler.run(batchAssertions({ assertions, actions }, sizesBytes), signal);
    },
    replaceProcesses: () => scheduler.replaceProcesses(),
    close: () => scheduler.close(),
  };
}

/** The checks that are pending, and the two workers that take their batches by turns. */
class CheckScheduler {
  readonly #general: DryRunWorker;
  readonly #small: DryRunWorker;
  readonly #budgets: CheckBudgets;
  /** Large checks take turns here first: one batch of theirs runs or waits in front of a small check, however many are pending. */
  readonly #largeTurn = new Semaphore(1);
  /** True for a small check. */
  readonly #pending = new Map<Promise<void>, boolean>();

  constructor(createWorker: () => DryRunWorker, budgets: CheckBudgets) {
    this.#general = createWorker();
    this.#small = createWorker();
    this.#budgets = budgets;
  }

  async run(batched: BatchedAssertions, signal: AbortSignal): Promise<void> {
    this.#requireCapacity(batched);
    const check = this.#check(batched, signal);
    this.#pending.set(check, batched.isSmall);
    try {
      await raceAbort(check, signal);
    } finally {
      this.#pending.delete(check);
    }
  }

  replaceProcesses(): void {
    for (const worker of [this.#general, this.#small]) worker.replace();
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#pending.keys());
    await Promise.all([this.#general.close(), this.#small.close()]);
  }

  #requireCapacity({ isSmall }: BatchedAssertions): void {
    const largeCount = [...this.#pending.values()].filter((isOtherSmall) => !isOtherSmall).length;
    const hasCapacity = isSmall || largeCount < MAX_PENDING_LARGE_CHECKS;
    if (this.#pending.size >= MAX_PENDING_CHECKS || !hasCapacity) throw new AppError('ASSERTION_CHECKS_BUSY', {});
  }

  /** Checks batch after batch. Throws the AppError of the first that is refused. */
  async #check({ batches, isSmall }: BatchedAssertions, signal: AbortSignal): Promise<void> {
    let { timeMs } = this.#budgets;
    for (const batch of batches) {
      const budgets = { ...this.#budgets, timeMs: Math.max(timeMs, 1) };
      const { outcome, usedMs } = isSmall
        ? await this.#runSmall(batch, budgets, signal)
        : await this.#largeTurn.run(() => this.#general.run(batch, budgets, signal), 1, signal);
      timeMs -= usedMs;
      const error = errorOf(outcome, batch, this.#budgets);
      if (error !== null) throw error;
    }
  }

  /** Runs a small batch in the first process, or in the second one where its turn does not come soon. */
  async #runSmall(batch: AssertionBatch, budgets: CheckBudgets, signal: AbortSignal): Promise<DryRun> {
    const late = AbortSignal.timeout(SECOND_PROCESS_DELAY_MS);
    try {
      return await this.#general.run(batch, budgets, AbortSignal.any([signal, late]));
    } catch (error) {
      if (error !== late.reason) throw error;
      return await this.#small.run(batch, budgets, signal);
    }
  }
}

/** Returns the error of a batch that is refused; null for one that passed. */
function errorOf(outcome: DryRun['outcome'], batch: AssertionBatch, limits: CheckBudgets): AppError | null {
  const only = batch.assertions.length === 1 ? 0 : null;
  switch (outcome.kind) {
    case 'answered':
      return outcome.refusal === null ? null : refused(outcome.refusal, batch);
    case 'exceeded': {
      const { budget } = outcome;
      const [limit, unit] = budget === 'time' ? [limits.timeMs, 'ms' as const] : [limits.memoryBytes, 'bytes' as const];
      return new AppError('ASSERTIONS_TOO_COSTLY', { budget, limit, unit }, locationOf(only, batch));
    }
    case 'exited':
      // Assertions that crash the process must not be signed.
      return refused({ index: only, problem: `the C2PA SDK did not survive them (${outcome.how})` }, batch);
  }
}

function refused({ index, problem }: Refusal, batch: AssertionBatch): AppError {
  const label = index === null ? undefined : batch.assertions[index]?.label;
  if (batch.actions.length > 0) return new AppError('ACTIONS_REFUSED', { problem }, locationOf(null, batch));
  if (label === undefined) return new AppError('ASSERTIONS_REFUSED', { problem }, locationOf(null, batch));
  return new AppError('ASSERTION_DATA_REFUSED', { label, problem }, locationOf(index, batch));
}

function locationOf(index: number | null, { actions, start }: AssertionBatch): { field: string } {
  if (actions.length > 0) return { field: 'params.actions' };
  return { field: index === null ? 'params.assertions' : `params.assertions[${start + index}].data` };
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
