import type { JobEngine } from '../job-engine.ts';
import type { Log } from '../log.ts';
import { JobStore } from '../store/job-store.ts';
import { openPostgres } from '../store/postgres/open-postgres.ts';
import type { Accompaniment, Aftermath } from '../store/postgres/postgres-runner.ts';
import { Announcer } from './announcer.ts';
import { ClusterDispatcher } from './cluster-dispatcher.ts';
import { Deliveries } from './deliveries.ts';
import { holdDataFolder } from './hold-data-folder.ts';
import { type Notice, Notices } from './notices.ts';

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
    const announcer = new Announcer(runner, log);
    runner.accompany(accompanimentOf(deliveries), aftermathOf(announcer));
    log.info({ database: place }, 'job database opened');
    let notices: Notices | undefined;
    return {
      store,
      begin: async (options) => {
        const dispatcher = new ClusterDispatcher({ ...options, store, runner, deliveries, announcer });
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
        await announcer.close();
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

/** What happens with the actions of the store, in their transactions. */
function accompanimentOf(deliveries: Deliveries): Accompaniment {
  return {
    submitJobs: async (db, [jobs], known) => {
      const fresh = jobs.filter((_, index) => known[index] === null);
      await deliveries.send(
        db,
        fresh.map(({ jobId, sync, request }) => ({ jobId, sync, count: request.inputs.length })),
      );
    },
  };
}

/** What all nodes are told of the actions of the store. */
function aftermathOf(announcer: Announcer): Aftermath {
  const tellEnd = (jobId: string, { jobEnded }: { readonly jobEnded: boolean }) => {
    if (jobEnded) announcer.announce({ type: 'ended', jobId });
  };
  return {
    submitJobs: (_, known) => {
      if (known.includes(null)) announcer.announce({ type: 'queued' });
    },
    cancelJob: ([jobId], cancel) => {
      if (cancel?.changed) announcer.announce({ type: cancel.jobEnded ? 'ended' : 'cancelled', jobId });
    },
    requeueInput: ([{ jobId }], end) => {
      if (end.input === 'queued') announcer.announce({ type: 'queued' });
      tellEnd(jobId, end);
    },
    recordProcessEnd: ([{ jobId }], end) => tellEnd(jobId, end),
    takeDelivered: ([{ jobId }], taken) => {
      if (taken.claim === null) tellEnd(jobId, taken);
    },
  };
}
