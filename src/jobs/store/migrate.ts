import type { Kysely } from 'kysely';
import { type Migration, migrations } from './migrations.ts';
import type { Database } from './tables.ts';

/**
 * Brings the tables to the version that this release knows, each migration in a transaction of its own. Resolves with
 * the version that the database has: it is greater than the number of migrations where a newer release made it, and
 * then nothing was changed.
 */
export async function migrate(db: Database, steps: readonly Migration[] = migrations): Promise<number> {
  await db.schema
    .createTable('schema_versions')
    .ifNotExists()
    .addColumn('version', 'integer', (column) => column.primaryKey())
    .addColumn('applied_at', 'text', (column) => column.notNull())
    .execute();
  const present = await versionOf(db);
  for (const [index, step] of steps.entries()) {
    if (index >= present) await apply(db, index + 1, step);
  }
  return Math.max(present, steps.length);
}

async function versionOf(db: Database): Promise<number> {
  const row = await db
    .selectFrom('schema_versions')
    .select(({ fn }) => fn.max('version').as('version'))
    .executeTakeFirst();
  return row?.version ?? 0;
}

async function apply(db: Database, version: number, step: Migration): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await step(transaction as unknown as Kysely<unknown>);
    await transaction.insertInto('schema_versions').values({ version, applied_at: new Date().toISOString() }).execute();
  });
}
