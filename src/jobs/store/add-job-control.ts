import { type Kysely, sql } from 'kysely';

/** The second version: jobs are cancelled, listed, told apart by idempotency keys, called back and traced. */
export async function addJobControl(db: Kysely<unknown>): Promise<void> {
  await addColumns(db);

  await db.schema
    .createTable('callbacks')
    .addColumn('job_id', 'text', (column) => column.primaryKey().references('jobs.job_id').onDelete('cascade'))
    .addColumn('url', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('ended_at', 'text')
    .addColumn('next_attempt_at', 'text')
    .execute();

  await db.schema
    .createIndex('callbacks_due')
    .on('callbacks')
    .column('next_attempt_at')
    .where(sql.ref('next_attempt_at'), 'is not', null)
    .execute();
  await db.schema
    .createIndex('jobs_idempotency_key')
    .on('jobs')
    .column('idempotency_key')
    .unique()
    .where(sql.ref('idempotency_key'), 'is not', null)
    .execute();
  await db.schema.createIndex('jobs_status').on('jobs').columns(['status', 'job_id']).execute();
}

/** SQLite adds one column in a statement. */
async function addColumns(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('jobs').addColumn('cancelled_at', 'text').execute();
  await db.schema.alterTable('jobs').addColumn('idempotency_key', 'text').execute();
  await db.schema.alterTable('jobs').addColumn('request_digest', 'text').execute();
  for (const flag of ['has_callback', 'has_url_secrets']) {
    await db.schema
      .alterTable('jobs')
      .addColumn(flag, 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
  }
  await db.schema.alterTable('job_requests').addColumn('trace_parent', 'text').execute();
}
