import { extname } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { Launcher } from '#processes/launcher.ts';
import { untilAborted } from '../until-aborted.ts';
import { batchAssertions } from './assertion-batches.ts';
import { AssertionCheck } from './assertion-check.ts';
import { requireFitAssertions } from './assertion-rules.ts';
import type { CheckBudgets } from './assertion-trial-messages.ts';
import { CheckQueue } from './check-queue.ts';
import type { CustomAssertion } from './manifest-author.ts';
import { TrialLane } from './trial-lane.ts';

/** In a build, every module is JavaScript. */
const PROCESS_URL = new URL(`./run-assertion-trials${extname(import.meta.url)}`, import.meta.url);

/** Requests whose checks are pending, each of which holds its body. Large ones leave a part to small ones. */
const MAX_PENDING_CHECKS = 256;
const MAX_PENDING_LARGE_CHECKS = 128;

/** A small check that waits gets a second process when the first has been at one batch for this time, or is at a large one. */
const SECOND_PROCESS_AFTER_MS = 1_000;

/**
 * A process without anything to check ends after so long: what the readers hold (150 MB) would otherwise stay for good.
 * The next check then waits for a start, half a second.
 */
const IDLE_MS = 30_000;

/** Tells, before a job is made, whether manifests can carry the assertions of a request. */
export interface AssertionTrial {
  /**
   * Rejects with an AppError of the code `VALIDATION_FAILED` and the field at fault where an assertion breaks a rule,
   * where a manifest signed with a throw-away key does not carry it as it is, where a reader calls it invalid, or where
   * the checks pass their budget.
   */
  checkAssertions(assertions: readonly CustomAssertion[], signal: AbortSignal): Promise<void>;
  /** Waits for what is pending, and ends the processes. */
  close(): Promise<void>;
}

export interface AssertionTrialOptions {
  /** The module of the process; another one in tests. */
  readonly entry?: URL;
  readonly idleMs?: number;
  readonly launcher?: Launcher;
  /** What the checks of one request may use; less in tests. */
  readonly budgets?: CheckBudgets;
}

/**
 * Has assertions checked in processes of their own, which have no key and no secrets: the service never loads the SDK,
 * gives its memory back, and outlives what the SDK may do. One process takes the batches of all requests by turns; a
 * second one takes small checks only, while the first is busy with something large.
 */
export function createAssertionTrial({
  entry = PROCESS_URL,
  idleMs = IDLE_MS,
  launcher = new Launcher(),
  budgets,
}: AssertionTrialOptions = {}): AssertionTrial {
  const scheduler = new CheckScheduler(() => new TrialLane({ entry, launcher, idleMs }));
  return {
    async checkAssertions(assertions, signal) {
      signal.throwIfAborted();
      if (assertions.length === 0) return;
      const { sizesBytes } = requireFitAssertions(assertions);
      await scheduler.run(new AssertionCheck(batchAssertions(assertions, sizesBytes), budgets), signal);
    },
    close: () => scheduler.close(),
  };
}

/** Gives the batches of pending checks to two lanes. */
class CheckScheduler {
  readonly #queue = new CheckQueue<AssertionCheck>();
  readonly #pending = new Set<AssertionCheck>();
  readonly #general: TrialLane;
  readonly #small: TrialLane;
  /** Whether the general lane is at a batch that small checks should not wait for. */
  #isGeneralSlow = false;

  constructor(newLane: () => TrialLane) {
    this.#general = newLane();
    this.#small = newLane();
  }

  async run(check: AssertionCheck, signal: AbortSignal): Promise<void> {
    this.#refuseBeyondLimits(check);
    this.#pending.add(check);
    this.#queue.add(check);
    this.#dispatch();
    try {
      await untilAborted(check.passed, signal);
    } finally {
      check.abandon();
      this.#queue.remove(check);
      this.#pending.delete(check);
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#pending].map(({ passed }) => passed));
    await Promise.all([this.#general.end(), this.#small.end()]);
  }

  #refuseBeyondLimits({ isSmall }: AssertionCheck): void {
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
    }, SECOND_PROCESS_AFTER_MS);
    void this.#begin(this.#general, check, () => {
      clearTimeout(slow);
      this.#isGeneralSlow = false;
    });
  }

  async #begin(lane: TrialLane, check: AssertionCheck | undefined, ended?: () => void): Promise<void> {
    if (check === undefined) return;
    try {
      const { outcome, usedMs } = await lane.run(check.batch.assertions, check.remainingBudgets);
      check.take(outcome, usedMs);
    } catch (error) {
      check.fail(error);
    }
    ended?.();
    if (!check.isOver) this.#queue.add(check);
    this.#dispatch();
  }
}
