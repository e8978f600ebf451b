import type { Database } from './tables.ts';

/** Rejects where the database cannot be read. */
export async function ping(db: Database): Promise<void> {
  await db.selectFrom('schema_versions').select('version').limit(1).execute();
}
