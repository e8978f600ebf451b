import { type Kysely, sql } from 'kysely';
import { addCallers } from './add-callers.ts';
import { addJobControl } from './add-job-control.ts';
import { addSharing } from './add-sharing.ts';

/** A change of the tables. Written in what all engines share, run once each, in order; never edited once released. */
export type Migration = (db: Kysely<unknown>) => Promise<void>;

/** The version of a database is the number of migrations that it has had. */
export const migrations: readonly Migration[] = [
  createJobsAndInputs,
  addJobControl,
  addSharing,
  addServiceEnds,
  addCallers,
];

async function createJobsAndInputs(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('jobs')
    .addColumn('job_id', 'text', (column) => column.primaryKey())
    .addColumn('sync', 'integer', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('queued_at', 'text', (column) => column.notNull())
    .addColumn('started_at', 'text')
    .addColumn('finished_at', 'text')
    .addColumn('inputs_total', 'integer', (column) => column.notNull())
    .addColumn('inputs_done', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('inputs_failed', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('bytes_done', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('bytes_total', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();

  await db.schema
    .createTable('job_requests')
    .addColumn('job_id', 'text', (column) => column.primaryKey().references('jobs.job_id').onDelete('cascade'))
    .addColumn('operation', 'text', (column) => column.notNull())
    .addColumn('output', 'text', (column) => column.notNull())
    .addColumn('params', 'text', (column) => column.notNull())
    .execute();

  await db.schema
    .createTable('inputs')
    .addColumn('job_id', 'text', (column) => column.notNull().references('jobs.job_id').onDelete('cascade'))
    .addColumn('input_index', 'integer', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('attempt', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('process_ends', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('input', 'text', (column) => column.notNull())
    .addColumn('result', 'text')
    .addPrimaryKeyConstraint('inputs_key', ['job_id', 'input_index'])
    .execute();

  // Partial, so that they hold what waits and what runs, not the history.
  await db.schema
    .createIndex('inputs_queued')
    .on('inputs')
    .columns(['job_id', 'input_index'])
    .where(sql.ref('status'), '=', sql.lit('queued'))
    .execute();
  await db.schema
    .createIndex('inputs_claimed')
    .on('inputs')
    .columns(['job_id', 'input_index'])
    .where(sql.ref('status'), 'in', sql`('reserved', 'running')`)
    .execute();
  await db.schema.createIndex('jobs_finished').on('jobs').column('finished_at').execute();
}

/** Ends of the whole service are counted apart from those of an input's own process. */
async function addServiceEnds(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('inputs')
    .addColumn('service_ends', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
}
