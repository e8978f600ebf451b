import { type Kysely, sql } from 'kysely';
import { isPostgres } from './dialect.ts';

/** The third version: several nodes share the inputs of a job, transient failures are retried, deliveries are told apart. */
export async function addSharing(db: Kysely<unknown>): Promise<void> {
  for (const [name, type] of [
    ['transient_failures', 'integer'],
    ['bytes_done', 'bigint'],
    ['bytes_total', 'bigint'],
  ] as const) {
    await db.schema
      .alterTable('inputs')
      .addColumn(name, type, (column) => column.notNull().defaultTo(0))
      .execute();
  }
  await db.schema.alterTable('inputs').addColumn('delivered_digest', 'text').execute();

  // Compared byte by byte, so that what lies inside a folder is a range.
  const byteOrderedText = isPostgres(db) ? sql`text collate "C"` : sql`text`;
  await db.schema
    .createTable('destinations')
    .addColumn('job_id', 'text', (column) => column.notNull().references('jobs.job_id').onDelete('cascade'))
    .addColumn('place', byteOrderedText, (column) => column.notNull())
    .addColumn('input_index', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('destinations_key', ['job_id', 'place'])
    .execute();
}
