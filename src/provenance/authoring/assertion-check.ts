import { AppError } from '#errors/app-error.ts';
import type { AssertionBatch, BatchedAssertions } from './assertion-batches.ts';
import type { CheckBudgets, Refusal, TrialOutcome } from './assertion-trial-messages.ts';
import type { QueuedCheck } from './check-queue.ts';

/**
 * What the checks of one request may use. 2,000 assertions, or 8 MiB of data, take about a second and 300 MB on a host
 * that is not busy.
 */
const CHECK_BUDGETS: CheckBudgets = { timeMs: 15_000, memoryBytes: 1024 ** 3 };

/** The check of one request's assertions, batch by batch. */
export class AssertionCheck implements QueuedCheck {
  readonly isSmall: boolean;
  readonly #batches: readonly AssertionBatch[];
  readonly #budgets: CheckBudgets;
  readonly #passed = Promise.withResolvers<void>();
  #doneCount = 0;
  #usedMs = 0;
  #isOver = false;

  constructor({ batches, isSmall }: BatchedAssertions, budgets: CheckBudgets = CHECK_BUDGETS) {
    this.#batches = batches;
    this.isSmall = isSmall;
    this.#budgets = budgets;
    // Whoever gave up does not hear of a failure.
    this.#passed.promise.catch(() => undefined);
  }

  get remainingCount(): number {
    return this.#batches.length - this.#doneCount;
  }

  /** Resolves when every batch has passed; rejects with what is wrong with one of them. */
  get passed(): Promise<void> {
    return this.#passed.promise;
  }

  /** Whether nothing of it is to be done any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The batch that is next. */
  get batch(): AssertionBatch {
    return this.#batches[this.#doneCount] as AssertionBatch;
  }

  /** What its next batch may use. */
  get remainingBudgets(): CheckBudgets {
    return { ...this.#budgets, timeMs: Math.max(this.#budgets.timeMs - this.#usedMs, 1) };
  }

  /** To be called when nobody waits for it any more. */
  abandon(): void {
    this.#isOver = true;
  }

  fail(error: unknown): void {
    this.#isOver = true;
    this.#passed.reject(error);
  }

  /** Takes what became of its next batch. */
  take(outcome: TrialOutcome, usedMs: number): void {
    this.#usedMs += usedMs;
    const error = this.#errorOf(outcome);
    if (error !== null) return this.fail(error);
    this.#doneCount += 1;
    if (this.remainingCount > 0) return;
    this.#isOver = true;
    this.#passed.resolve();
  }

  #errorOf(outcome: TrialOutcome): AppError | null {
    const { assertions } = this.batch;
    const only = assertions.length === 1 ? 0 : null;
    switch (outcome.kind) {
      case 'answered':
        return outcome.refusal === null ? null : this.#refused(outcome.refusal);
      case 'exceeded':
        return this.#exceeded(outcome.budget, only);
      case 'process-ended':
        // That they end the process is reason enough not to sign them.
        return this.#refused({ index: only, problem: `the C2PA SDK did not survive them (${outcome.how})` });
    }
  }

  #refused({ index, problem }: Refusal): AppError {
    const label = index === null ? undefined : this.batch.assertions[index]?.label;
    if (label === undefined) return new AppError('ASSERTIONS_REFUSED', { problem }, this.#locationOf(null));
    return new AppError('ASSERTION_DATA_REFUSED', { label, problem }, this.#locationOf(index));
  }

  #exceeded(budget: 'time' | 'memory', index: number | null): AppError {
    const [limit, unit] =
      budget === 'time' ? [this.#budgets.timeMs, 'ms' as const] : [this.#budgets.memoryBytes, 'bytes' as const];
    return new AppError('ASSERTIONS_TOO_COSTLY', { budget, limit, unit }, this.#locationOf(index));
  }

  #locationOf(index: number | null): { field: string } {
    return { field: index === null ? 'params.assertions' : `params.assertions[${this.batch.start + index}].data` };
  }
}
