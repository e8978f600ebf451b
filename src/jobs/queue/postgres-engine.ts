import type { Config } from '#config/config.ts';
import type { Log } from '#telemetry/logger.ts';
import { holdDataFolder } from '../data-folder.ts';
import type { NodeIdentities } from '../identities.ts';
import type { JobStore } from '../store/job-store.ts';
import { openPostgres, type PostgresDatabase } from '../store/postgres/postgres-database.ts';
import { isRead, runMethod, STORE_METHODS, type StoreMethod } from '../store/store-methods.ts';
import type { Database } from '../store/tables.ts';
import { engineOf, type JobEngine } from './job-queue.ts';
import { NodeRegistry, nodeSettings } from './node-registry.ts';
import { PostgresQueue } from './postgres-queue.ts';

/** Bound on the connections of a node, which submissions, look-ups and workers share. One more listens for notifications. */
const MAX_CONNECTIONS = 10;

interface ClusterOptions {
  readonly config: Config;
  /** Absent on nodes that do not sign. */
  readonly identities?: Pick<NodeIdentities, 'identities'> | undefined;
  readonly log: Log;
}

/**
 * Opens this node's own data folder and the database that nodes share, and joins them. Throws an AppError of the catalogue
 * when either cannot be used, or a node has other settings.
 */
export async function openCluster(url: string, { config, identities, log }: ClusterOptions): Promise<JobEngine> {
  await using stack = new AsyncDisposableStack();
  stack.defer(await holdDataFolder(config.jobs.data_dir));
  const engine = await openPostgresEngine(url, MAX_CONNECTIONS, log);
  stack.defer(() => engine.close());
  const settings = () => nodeSettings(config, identities?.identities ?? null);
  const namesIdentities = Object.keys(config.signing.identities).length > 0;
  const registry = await NodeRegistry.join(engine.database, { settings, namesIdentities }, log);
  stack.defer(() => registry.leave());
  const opened = stack.move();
  return { ...engine, otherNodes: () => registry.others, close: () => opened.disposeAsync() };
}

/** Opens the database and its queue, for a node that knows no others. Throws an AppError of the catalogue when they cannot be used. */
export async function openPostgresEngine(
  url: string,
  maxConnections: number,
  log: Log,
): Promise<JobEngine & { readonly database: PostgresDatabase }> {
  const database = await openPostgres(url, maxConnections);
  try {
    const queue = await PostgresQueue.open(database, url, log);
    log.info({ database: database.address }, 'job database opened');
    return { ...engineOf(postgresStore(database), queue), database };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Returns the store on PostgreSQL: each call is one read or one transaction. */
function postgresStore(database: PostgresDatabase): JobStore {
  const call = (method: StoreMethod, args: readonly unknown[]) => {
    const run = (db: Database) => runMethod(db, method, args);
    return isRead(method) ? database.read(run) : database.transaction(run);
  };
  const bound = STORE_METHODS.map((method) => [method, (...args: unknown[]) => call(method, args)]);
  return { ...(Object.fromEntries(bound) as Pick<JobStore, StoreMethod>), close: () => database.close() };
}
