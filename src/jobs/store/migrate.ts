import type { Kysely } from 'kysely';
import { AppError } from '#errors/app-error.ts';
import { type Migration, migrations } from './migrations.ts';
import type { Database } from './tables.ts';

/**
 * Brings the tables to the version that this release knows, each migration in a transaction of its own. Rejects with
 * STORE_NEWER where a newer release made them, and changes nothing then. `place` is for the message.
 */
export async function bringUpToDate(
  db: Database,
  place: string,
  steps: readonly Migration[] = migrations,
): Promise<void> {
  await db.schema
    .createTable('schema_versions')
    .ifNotExists()
    .addColumn('version', 'integer', (column) => column.primaryKey())
    .addColumn('applied_at', 'text', (column) => column.notNull())
    .execute();
  const present = await versionOf(db);
  if (present > steps.length) throw new AppError('STORE_NEWER', { file: place, version: present, known: steps.length });
  for (const [index, step] of steps.entries()) {
    if (index >= present) await apply(db, index + 1, step);
  }
}

async function versionOf(db: Database): Promise<number> {
  const row = await db
    .selectFrom('schema_versions')
    .select(({ fn }) => fn.max('version').as('version'))
    .executeTakeFirst();
  return row?.version ?? 0;
}

/** In a transaction of its own, unless the whole is one. */
async function apply(db: Database, version: number, step: Migration): Promise<void> {
  const work = async (transaction: Database) => {
    await step(transaction as unknown as Kysely<unknown>);
    await transaction.insertInto('schema_versions').values({ version, applied_at: new Date().toISOString() }).execute();
  };
  await (db.isTransaction ? work(db) : db.transaction().execute(work));
}
