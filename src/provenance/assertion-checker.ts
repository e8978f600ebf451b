import { extname } from 'node:path';
import { raceAbort } from '#concurrency/race-abort.ts';
import { AppError } from '#errors/app-error.ts';
import { Launcher } from '#processes/launcher.ts';
import { requireFitActions, requireFitAssertions } from './dry-run/assertion-rules.ts';
import { AssertionCheck, batchAssertions, CheckQueue } from './dry-run/check-queue.ts';
import type { CheckBudgets } from './dry-run/dry-run-process.ts';
import { DryRunWorker } from './dry-run/dry-run-process.ts';
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
  /** Waits for pending checks and kills the processes. */
  close(): Promise<void>;
}

export interface AssertionCheckerOptions {
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
      const { sizesBytes } = requireFitAssertions(assertions);
      requireFitActions(actions, assertions);
      const batched = batchAssertions({ assertions, actions }, sizesBytes);
      await scheduler.run(new AssertionCheck(batched, budgets), signal);
    },
    close: () => scheduler.close(),
  };
}

/** Distributes the batches of pending checks to two dry-run workers. */
class CheckScheduler {
  readonly #queue = new CheckQueue<AssertionCheck>();
  readonly #pending = new Set<AssertionCheck>();
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
    this.#pending.add(check);
    this.#queue.add(check);
    this.#dispatch();
    try {
      await raceAbort(check.passed, signal);
    } finally {
      check.abandon();
      this.#queue.remove(check);
      this.#pending.delete(check);
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#pending].map(({ passed }) => passed));
    await Promise.all([this.#general.close(), this.#small.close()]);
  }

  #requireCapacity({ isSmall }: AssertionCheck): void {
    const largeCount = [...this.#pending].filter((pending) => !pending.isSmall).length;
    if (this.#pending.size < MAX_PENDING_CHECKS && (isSmall || largeCount < MAX_PENDING_LARGE_CHECKS)) return;
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
