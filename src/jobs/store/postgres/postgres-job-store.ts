import type { JobStore } from '../job-store.ts';
import { type MethodOnDatabase, type StoreMethod, storeMethods } from '../store-methods.ts';
import type { PostgresDatabase } from './postgres-database.ts';

/** Returns the methods of the store on PostgreSQL: each call is one read or one transaction. */
export function postgresStoreMethods(database: PostgresDatabase): Pick<JobStore, StoreMethod> {
  const methods = Object.entries(storeMethods as Record<string, MethodOnDatabase<unknown[], unknown>>);
  const bound = methods.map(([name, { access, run }]) => [
    name,
    (...args: unknown[]) =>
      access === 'read' ? database.read((db) => run(db, ...args)) : database.transaction((db) => run(db, ...args)),
  ]);
  return Object.fromEntries(bound) as Pick<JobStore, StoreMethod>;
}
