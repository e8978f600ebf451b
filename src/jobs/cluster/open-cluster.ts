import type { JobEngine } from '../job-engine.ts';
import type { Log } from '../log.ts';
import { JobStore } from '../store/job-store.ts';
import { openPostgres } from '../store/postgres/open-postgres.ts';
import type { Accompaniment } from '../store/postgres/postgres-runner.ts';
import { ClusterDispatcher } from './cluster-dispatcher.ts';
import { Deliveries } from './deliveries.ts';
import { holdDataFolder } from './hold-data-folder.ts';
import { type Notice, Notices, notify } from './notices.ts';

/** Connections of a node: submissions and look-ups share them with what its workers record. One more listens. */
const MAX_CONNECTIONS = 10;

/**
 * Opens the database that nodes share, and this node's own data folder. Rejects with an AppError that says why not.
 */
export async function openCluster(url: string, dataDir: string, log: Log): Promise<JobEngine> {
  const letGo = await holdDataFolder(dataDir);
  try {
    const { runner, pool, place } = await openPostgres(url, MAX_CONNECTIONS);
    const deliveries = await openDeliveries(pool, runner, log);
    const store = new JobStore(runner);
    runner.accompany(accompanimentOf(deliveries));
    log.info({ database: place }, 'job database opened');
    let notices: Notices | undefined;
    return {
      store,
      begin: async (options) => {
        const dispatcher = new ClusterDispatcher({ ...options, store, runner, deliveries });
        const hear = (notice: Notice) => {
          if (notice.type === 'queued') dispatcher.wake();
          else if (notice.type === 'cancelled') dispatcher.cancel(notice.jobId, false);
          else options.jobEndedElsewhere(notice.jobId);
        };
        notices = new Notices(url, log, hear, () => dispatcher.wake());
        notices.start();
        return dispatcher;
      },
      close: async () => {
        await notices?.close();
        await deliveries.close();
        await runner.close();
        letGo();
      },
    };
  } catch (error) {
    letGo();
    throw error;
  }
}

async function openDeliveries(
  pool: Parameters<typeof Deliveries.open>[0],
  runner: { close(): Promise<void> },
  log: Log,
): Promise<Deliveries> {
  try {
    return await Deliveries.open(pool, log);
  } catch (error) {
    await runner.close();
    throw error;
  }
}

/** What happens with the actions of the store, in their transactions: deliveries, and notices to all nodes. */
function accompanimentOf(deliveries: Deliveries): Accompaniment {
  return {
    submitJob: async (db, [{ jobId, sync, request }], replayed) => {
      if (replayed !== null) return;
      await deliveries.send(db, jobId, sync, request.inputs.length);
      await notify(db, { type: 'queued' });
    },
    cancelJob: async (db, [jobId], cancel) => {
      if (cancel?.changed) await notify(db, { type: cancel.jobEnded ? 'ended' : 'cancelled', jobId });
    },
    finishInput: async (db, [{ jobId }], { jobEnded }) => {
      if (jobEnded) await notify(db, { type: 'ended', jobId });
    },
    requeueInput: async (db, [{ jobId }], { input, jobEnded }) => {
      if (jobEnded) await notify(db, { type: 'ended', jobId });
      else if (input === 'queued') await notify(db, { type: 'queued' });
    },
    recordProcessEnd: async (db, [{ jobId }], { jobEnded }) => {
      if (jobEnded) await notify(db, { type: 'ended', jobId });
    },
    takeDelivered: async (db, [{ jobId }], taken) => {
      if (taken.claim === null && taken.jobEnded) await notify(db, { type: 'ended', jobId });
    },
  };
}
