import { openPostgresEngine } from '#jobs/queue/postgres-engine.ts';
import type { PostgresServer } from '../servers/postgres-server.ts';
import { NO_LOG } from './test-jobs.ts';

const templates = new WeakMap<PostgresServer, Promise<string>>();

/**
 * Makes a database that has the tables of jobs, and resolves with its URL. It is a copy of one that was migrated once for the
 * whole server: a migration costs ten times as much processor time.
 */
export async function createJobsDatabase(server: PostgresServer): Promise<string> {
  const template = templates.get(server) ?? migratedDatabase(server);
  templates.set(server, template);
  return server.createDatabase(await template);
}

async function migratedDatabase(server: PostgresServer): Promise<string> {
  const url = await server.createDatabase();
  await (await openPostgresEngine(url, 2, NO_LOG)).close();
  return url.slice(url.lastIndexOf('/') + 1);
}
