import type { Log } from '#telemetry/logger.ts';
import type { JobStore } from './job-store.ts';
import type { Database } from './tables.ts';

/** Bounds on one transaction of `pruneJobs`, so that other transactions do not wait long for it. */
const PRUNE_BATCH_SIZE = 200;
const MAX_PRUNED_INPUTS = 2000;

/** The size of a small job with its inputs and indexes. */
const PADDING = 'x'.repeat(32 * 1024);

/** Implements `JobStore.pruneJobs`. */
export async function pruneJobs(db: Database, finishedBefore: Date): Promise<number> {
  const finished = await db
    .selectFrom('jobs')
    .select(['job_id', 'inputs_total'])
    .where('finished_at', '<', finishedBefore.toISOString())
    // A pending callback needs its job; it is given up within a day.
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('callbacks')
            .select('callbacks.job_id')
            .whereRef('callbacks.job_id', '=', 'jobs.job_id')
            .where('next_attempt_at', 'is not', null),
        ),
      ),
    )
    .orderBy('finished_at')
    .limit(PRUNE_BATCH_SIZE)
    .execute();
  const batch: typeof finished = [];
  let inputs = 0;
  for (const job of finished) {
    inputs += job.inputs_total;
    if (batch.length > 0 && inputs > MAX_PRUNED_INPUTS) break;
    batch.push(job);
  }
  if (batch.length === 0) return 0;
  const jobIds = batch.map((job) => job.job_id);
  await db.deleteFrom('jobs').where('job_id', 'in', jobIds).execute();
  return batch.length;
}

/** Deletes all jobs that finished before a time, in batches, and returns their number. */
export async function pruneAllJobs(store: JobStore, finishedBefore: Date): Promise<number> {
  let pruned = 0;
  for (;;) {
    const count = await store.pruneJobs(finishedBefore);
    if (count === 0) return pruned;
    pruned += count;
  }
}

/** The interval of deleting jobs past their retention. */
const PRUNE_INTERVAL_MS = 60 * 60 * 1000;

const HOUR_MS = 60 * 60 * 1000;

/**
 * Deletes jobs past their retention, at once and then in an interval. A failure is only logged. Returns a function that stops that, to
 * be called before the store is closed; the next start goes on.
 */
export function startPruning(store: JobStore, retentionHours: number, log: Log): () => void {
  let isStopped = false;
  const prune = async () => {
    try {
      const pruned = await pruneAllJobs(store, new Date(Date.now() - retentionHours * HOUR_MS));
      if (pruned > 0) log.info({ pruned_jobs: pruned }, 'jobs past their retention were deleted');
    } catch (error) {
      if (!isStopped) log.error({ err: error }, 'jobs past their retention could not be deleted');
    }
  };
  const timer = setInterval(() => void prune(), PRUNE_INTERVAL_MS).unref();
  void prune();
  return () => {
    isStopped = true;
    clearInterval(timer);
  };
}

/** Implements `JobStore.probeWrite`. */
export async function probeWrite(db: Database): Promise<void> {
  const written = { written_at: new Date().toISOString(), padding: PADDING };
  await db
    .insertInto('write_probe')
    .values({ id: 1, ...written })
    .onConflict((row) => row.column('id').doUpdateSet(written))
    .execute();
}
