import { Dispatcher } from './dispatching/dispatcher.ts';
import type { JobEngine } from './job-engine.ts';
import { JobStore } from './store/job-store.ts';
import { openSqlite } from './store/sqlite/open-sqlite.ts';

/** Opens the embedded store in the data folder, for this process alone. Rejects with an AppError that says why not. */
export async function openEmbeddedEngine(dataDir: string): Promise<JobEngine> {
  const store = new JobStore(await openSqlite(dataDir));
  return {
    store,
    begin: async (options) => {
      const recovered = await store.recover();
      const waiting = await store.waitingJobs();
      options.log.info({ recovered_inputs: recovered.length, waiting_jobs: waiting.length }, 'job store opened');
      const dispatcher = new Dispatcher({ ...options, store });
      for (const job of waiting) dispatcher.resume(job.jobId, job.sync, job.waiting, job.caller);
      return dispatcher;
    },
    close: () => store.close(),
  };
}
