import assert from 'node:assert';
import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { AppError } from '#errors/app-error.ts';
import { requireFitAssertions } from './assertion-rules.ts';
import type { TrialAnswer, TrialRequest } from './assertion-trial-messages.ts';
import type { CustomAssertion } from './manifest-author.ts';
import { untilAborted } from './until-aborted.ts';

/** In a build, every module is JavaScript. */
const THREAD_URL = new URL(`./assertion-trial-thread${extname(import.meta.url)}`, import.meta.url);

/** So many checks may wait for the thread; each holds a request body. */
const MAX_PENDING_CHECKS = 256;

/** Tells, before a job is made, whether manifests can carry the assertions of a request. */
export interface AssertionTrial {
  /**
   * Rejects with an AppError of the code `VALIDATION_FAILED` and the field at fault where an assertion breaks a rule,
   * or where a manifest built and signed on trial refuses it or does not give it back as it was.
   */
  checkAssertions(assertions: readonly CustomAssertion[], signal: AbortSignal): Promise<void>;
  /** Waits for what runs, and ends the thread. */
  close(): Promise<void>;
}

type Pending = PromiseWithResolvers<TrialAnswer>;

/**
 * The trials run on a thread of their own, so that the SDK never blocks the service. It is started by the first check,
 * and never ended while it is busy: that could end the process (the SDK's threads do not survive it).
 */
export function createAssertionTrial(): AssertionTrial {
  const pending = new Map<number, Pending>();
  let thread: Worker | null = null;
  let lastId = 0;

  const startThread = (): Worker => {
    const started = new Worker(THREAD_URL);
    started.on('message', (answer: TrialAnswer) => settle(answer.id, (check) => check.resolve(answer)));
    started.on('error', (error) => {
      for (const id of [...pending.keys()]) settle(id, (check) => check.reject(error));
    });
    started.on('exit', () => {
      if (thread === started) thread = null;
    });
    return started;
  };
  const settle = (id: number, end: (check: Pending) => void): void => {
    const check = pending.get(id);
    pending.delete(id);
    // An idle thread must not keep the process alive, a busy one has somebody waiting.
    if (pending.size === 0) thread?.unref();
    if (check !== undefined) end(check);
  };
  const runTrial = (assertions: readonly CustomAssertion[]): Promise<TrialAnswer> => {
    if (pending.size >= MAX_PENDING_CHECKS) throw new AppError('ASSERTION_CHECKS_BUSY', {});
    const check = Promise.withResolvers<TrialAnswer>();
    lastId += 1;
    pending.set(lastId, check);
    thread ??= startThread();
    thread.ref();
    thread.postMessage({ id: lastId, assertions } satisfies TrialRequest);
    return check.promise;
  };

  return {
    async checkAssertions(assertions, signal) {
      signal.throwIfAborted();
      if (assertions.length === 0) return;
      requireFitAssertions(assertions);
      const { refusal } = await untilAborted(runTrial(assertions), signal);
      if (refusal !== null) throw refusedError(assertions, refusal);
    },
    async close() {
      await Promise.allSettled([...pending.values()].map(({ promise }) => promise));
      const ending = thread;
      thread = null;
      if (ending === null) return;
      ending.ref();
      await Promise.all([once(ending, 'exit'), ending.terminate()]);
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
