import assert from 'node:assert';
import { extname } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { Launcher } from '#processes/launcher.ts';
import { untilAborted } from '../until-aborted.ts';
import { requireFitAssertions } from './assertion-rules.ts';
import type { TrialAnswer } from './assertion-trial-messages.ts';
import type { CustomAssertion } from './manifest-author.ts';
import { TrialProcess } from './trial-process.ts';

/** In a build, every module is JavaScript. */
const PROCESS_URL = new URL(`./run-assertion-trials${extname(import.meta.url)}`, import.meta.url);

/** So many checks may wait for the process; each holds a request body. */
const MAX_PENDING_CHECKS = 256;

/**
 * A process without anything to check ends after so long: what the SDK holds (60 MB and more) would otherwise stay for
 * good. The next check then waits for a start, a quarter of a second.
 */
const IDLE_MS = 30_000;

/** Tells, before a job is made, whether manifests can carry the assertions of a request. */
export interface AssertionTrial {
  /**
   * Rejects with an AppError of the code `VALIDATION_FAILED` and the field at fault where an assertion breaks a rule,
   * or where a manifest built and signed on trial refuses it or does not give it back as it was.
   */
  checkAssertions(assertions: readonly CustomAssertion[], signal: AbortSignal): Promise<void>;
  /** Waits for what runs, and ends the process. */
  close(): Promise<void>;
}

export interface AssertionTrialOptions {
  /** The module of the process; another one in tests. */
  readonly entry?: URL;
  readonly idleMs?: number;
  readonly launcher?: Launcher;
}

/**
 * The trials run in a process of their own, one after the other: the service never loads the SDK, gives its memory back,
 * and outlives what the SDK may do. The process is started by the first check and ends when it has been idle for a while.
 */
export function createAssertionTrial({
  entry = PROCESS_URL,
  idleMs = IDLE_MS,
  launcher = new Launcher(),
}: AssertionTrialOptions = {}): AssertionTrial {
  let child: TrialProcess | null = null;
  let previous: Promise<unknown> = Promise.resolve();
  let pendingCount = 0;
  let idleTimer: NodeJS.Timeout | undefined;

  const endWhenIdle = (): void => {
    if (pendingCount > 0) return;
    idleTimer = setTimeout(() => void endProcess(), idleMs).unref();
  };
  const endProcess = async (): Promise<void> => {
    clearTimeout(idleTimer);
    const ending = child;
    child = null;
    await ending?.end();
  };
  const runTrial = async (assertions: readonly CustomAssertion[]): Promise<TrialAnswer> => {
    if (child === null || child.hasEnded) child = new TrialProcess(entry, launcher);
    return await child.run(assertions);
  };
  const queueTrial = (assertions: readonly CustomAssertion[], signal: AbortSignal): Promise<TrialAnswer> => {
    if (pendingCount >= MAX_PENDING_CHECKS) throw new AppError('ASSERTION_CHECKS_BUSY', {});
    pendingCount += 1;
    clearTimeout(idleTimer);
    const trial = previous
      .then(() => {
        signal.throwIfAborted();
        return runTrial(assertions);
      })
      .finally(() => {
        pendingCount -= 1;
        endWhenIdle();
      });
    previous = trial.catch(() => undefined);
    return trial;
  };

  return {
    async checkAssertions(assertions, signal) {
      signal.throwIfAborted();
      if (assertions.length === 0) return;
      requireFitAssertions(assertions);
      const { refusal } = await untilAborted(queueTrial(assertions, signal), signal);
      if (refusal !== null) throw refusedError(assertions, refusal);
    },
    async close() {
      await previous;
      await endProcess();
    },
  };
}

function refusedError(
  assertions: readonly CustomAssertion[],
  { index, problem }: NonNullable<TrialAnswer['refusal']>,
): AppError {
  if (index === null) return new AppError('ASSERTIONS_REFUSED', { problem }, { field: 'params.assertions' });
  const assertion = assertions[index];
  assert(assertion !== undefined);
  return new AppError(
    'ASSERTION_DATA_REFUSED',
    { label: assertion.label, problem },
    { field: `params.assertions[${index}].data` },
  );
}
