import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import type { Config } from '#config/config.ts';
import type { JobResultResponse } from '#contract/job.ts';
import type { JobSnapshot, Submission } from '#jobs/job.ts';
import { asCallersSee, configFor, HANG_MS } from '../support/jobs/test-jobs.ts';
import type { ToTestService } from './test-service.ts';

const ENTRY = new URL('./test-service.ts', import.meta.url);

/** A running test service. Whatever it was asked when it dies is rejected. */
export interface TestService {
  readonly pid: number;
  submit(submission: Submission): Promise<string>;
  find(jobId: string): Promise<JobSnapshot | null>;
  ended(jobId: string): Promise<JobResultResponse>;
  stop(graceMs: number): Promise<void>;
  /** Settles when the process is gone. */
  readonly gone: Promise<unknown>;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
}

type Question = ToTestService extends infer Message
  ? Message extends { id: number }
    ? Omit<Message, 'id'>
    : never
  : never;

/** Starts a service of its own process, over a data folder or by a configuration, and resolves when it takes jobs. */
export async function startTestService(t: TestContext, setUp: string | Config): Promise<TestService> {
  const config = typeof setUp === 'string' ? configFor(setUp) : setUp;
  const child = fork(ENTRY, [JSON.stringify(config)], { serialization: 'advanced', execArgv: [] });
  const exit = once(child, 'exit');
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let nextId = 1;
  const expect = (id: number) => {
    const expected = Promise.withResolvers<unknown>();
    waiting.set(id, expected);
    return expected.promise;
  };
  child.on('message', ({ id, value }: { id: number; value: unknown }) => waiting.get(id)?.resolve(value));
  child.on('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('the test service is gone'));
  });
  const ask = (question: Question) => {
    const id = nextId++;
    const answer = expect(id);
    child.send({ ...question, id }, () => undefined);
    return answer.finally(() => waiting.delete(id));
  };
  const kill = async () => {
    child.kill('SIGKILL');
    await exit;
  };
  t.after(kill);
  await expect(0);
  assert(child.pid !== undefined);
  return {
    pid: child.pid,
    gone: exit,
    submit: (submission) => ask({ type: 'submit', submission }) as Promise<string>,
    find: (jobId) => ask({ type: 'find', jobId }) as Promise<JobSnapshot | null>,
    ended: async (jobId) => {
      const job = (await ask({ type: 'when-ended', jobId, timeoutMs: HANG_MS })) as JobSnapshot | null;
      if (job === null) throw new Error(`job ${jobId} does not end`);
      return asCallersSee(job);
    },
    stop: async (graceMs) => void (await ask({ type: 'stop', graceMs })),
    kill,
  };
}

/** Asserts that inputs that ran during too many of the kills have failed, and that all others have succeeded. */
export function assertTrueEnd(entry: { status: string; error_details?: { reason: string } }): void {
  if (entry.status !== 'succeeded') assert.equal(entry.error_details?.reason, 'INPUT_ENDED_PROCESS');
}
