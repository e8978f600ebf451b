import { type InputAttempt, NO_PROGRESS } from '#jobs/job.ts';
import type { JobEngine } from '#jobs/queue/job-queue.ts';
import { type ResultEntry, succeededEntry } from '#jobs/result-entries.ts';
import type { HandedIn, JobStore, LeasedInput, LeaseFilter, ReleasedInput } from '#jobs/store/job-store.ts';
import { ANY_PRIORITIES } from '#jobs/store/priority.ts';
import type { Scope } from './test-jobs.ts';

/** Creates a database, and returns a function that opens it, repeatedly. */
export type DatabaseFor = () => Promise<() => Promise<JobStore>>;

/** Returns a function that opens a store in a database of its own, until its scope ends. */
export function storeOpener(databaseFor: DatabaseFor): (scope: Scope) => Promise<JobStore> {
  return async (scope) => {
    const store = await (await databaseFor())();
    scope.after(() => store.close());
    return store;
  };
}

/** A filter that leaves nothing out. */
export const ALL_JOBS: LeaseFilter = {
  ...{ onlyJobs: null, withoutJobs: [], withoutCallers: [], withoutDependencies: [], onlySigners: null },
  overdueBefore: new Date(0).toISOString(),
};

/** Leases the next inputs of a job, and starts them unless they are to be reserved. */
export async function leased(
  store: JobStore,
  jobId: string,
  count = 1,
  status: 'running' | 'reserved' = 'running',
): Promise<readonly LeasedInput[]> {
  const part = { count, maxPriorities: ANY_PRIORITIES };
  const [inputs = []] = await store.leaseInputs([part], { ...ALL_JOBS, onlyJobs: [jobId] });
  if (status === 'running' && inputs.length > 0) await store.startInputs(inputs);
  return inputs;
}

/** The effect of handing in one input. */
interface End {
  readonly input: 'finished' | 'queued' | 'late';
  readonly jobFinished: boolean;
}

/** Records the result of one input. */
export async function finish(
  store: JobStore,
  lease: InputAttempt,
  entry: ResultEntry,
  progress = NO_PROGRESS,
): Promise<End> {
  return endOf(await store.finishInput({ lease, entry, progress, digest: null }));
}

/** Records that one input succeeded. */
export function succeed(
  store: JobStore,
  lease: InputAttempt,
  progress = NO_PROGRESS,
  outputPath = '/out',
): Promise<End> {
  return finish(
    store,
    lease,
    succeededEntry(lease.inputIndex, { outputPath, warnings: [], manifestDigest: null }),
    progress,
  );
}

/** Releases one input, which was stopped unless something else is said. */
export async function release(
  store: JobStore,
  lease: InputAttempt,
  why: { reason: 'stopped' | 'process-exited' } | { reason: 'transient-failure'; retryAt: number } = {
    reason: 'stopped',
  },
): Promise<End> {
  return endOf(await store.releaseInput({ lease, ...why } satisfies ReleasedInput));
}

/** Returns inputs to a queue that were stopped. */
export function releaseAll({ queue }: JobEngine, leases: readonly LeasedInput[]): Promise<readonly HandedIn[]> {
  return Promise.all(leases.map((lease) => queue.release({ lease, reason: 'stopped' })));
}

function endOf({ input, finishedJob }: HandedIn): End {
  return { input, jobFinished: finishedJob !== null };
}
