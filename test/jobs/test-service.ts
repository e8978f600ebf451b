/**
 * A service that is nothing but jobs, for tests to kill: `node test-service.ts <configuration as JSON>`. Its parent submits jobs
 * and asks for them over the channel of `fork`.
 */
import type { Submission } from '#jobs/job.ts';
import { Jobs } from '#jobs/jobs.ts';

export type ToTestService =
  | { readonly id: number; readonly type: 'submit'; readonly submission: Submission }
  | { readonly id: number; readonly type: 'find'; readonly jobId: string }
  | { readonly id: number; readonly type: 'when-ended'; readonly jobId: string; readonly timeoutMs: number }
  | { readonly id: number; readonly type: 'stop'; readonly graceMs: number };

const ignore = (): void => undefined;
const jobs = new Jobs({
  config: JSON.parse(process.argv[2] ?? ''),
  workerEntry: new URL('../support/jobs/scripted-worker.ts', import.meta.url),
  log: { info: ignore, warn: ignore, error: ignore },
  maxRunningInputs: 2,
});
await jobs.start();
process.on('disconnect', () => process.exit(1));
process.on('message', async (message: ToTestService) =>
  process.send?.({ id: message.id, value: await answer(message) }),
);
process.send?.({ id: 0 });

async function answer(message: ToTestService): Promise<unknown> {
  switch (message.type) {
    case 'submit':
      return (await jobs.submit(message.submission)).job_id;
    case 'find':
      return jobs.find(message.jobId);
    case 'when-ended':
      return jobs.whenFinished(message.jobId, message.timeoutMs, new AbortController().signal);
    case 'stop':
      return jobs.stop(message.graceMs);
  }
}
