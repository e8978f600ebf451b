import { type Kysely, sql } from 'kysely';

/** Adds the callers of jobs, and a row that is written to see whether the database can be. Older jobs have no caller. */
export async function addCallers(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('jobs').addColumn('caller', 'text').execute();
  await db.schema
    .createIndex('jobs_caller')
    .on('jobs')
    .columns(['caller', 'job_id'])
    .where(sql.ref('caller'), 'is not', null)
    .execute();

  await db.schema
    .createTable('write_probe')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('written_at', 'text', (column) => column.notNull())
    .addColumn('padding', 'text', (column) => column.notNull())
    .execute();
}
