import { type Kysely, sql } from 'kysely';
import { AppError } from '#errors/app-error.ts';
import { byteOrderedText, leasesByIndex, reasonOf } from './dialect.ts';
import type { Database } from './tables.ts';

/**
 * A change of the tables, in statements that SQLite and PostgreSQL share. Each runs once, in order, and is never edited
 * after its release. It only adds: nodes of the release before go on while it is there, and come back after it.
 */
export type Migration = (db: Kysely<unknown>) => Promise<void>;

/** All migrations. The version of a database is the number of migrations applied to it. */
export const migrations: readonly Migration[] = [
  createJobsAndInputs,
  addJobControl,
  addSharing,
  addServiceEnds,
  addCallers,
  addDescriptions,
  addRetries,
  addNodes,
  addPriorities,
  addDependencies,
  addRetriedInputs,
  addCounts,
  addOldestRelease,
  addIdentities,
];

/**
 * Migrates the tables to the version of this release, each migration in its own transaction. Tables that a newer release made are
 * used as they are, unless it says that this one cannot: then it throws `STORE_NEWER`. `address` names the database in the message.
 */
export async function migrate(db: Database, address: string, steps: readonly Migration[] = migrations): Promise<void> {
  await db.schema
    .createTable('schema_versions')
    .ifNotExists()
    .addColumn('version', 'integer', (column) => column.primaryKey())
    .addColumn('applied_at', 'text', (column) => column.notNull())
    .execute();
  const present = await versionOf(db);
  if (present > steps.length) return requireKnownVersion(db, address, steps);
  for (const [index, step] of steps.entries()) {
    if (index >= present) await apply(db, index + 1, step);
  }
}

/** Throws `STORE_NEWER` where the tables, which are there, are of a newer release that this one cannot share them with. */
export async function requireKnownVersion(db: Database, address: string, steps = migrations): Promise<void> {
  const present = await versionOf(db);
  if (present <= steps.length || (await oldestVersion(db)) <= steps.length) return;
  throw new AppError('STORE_NEWER', { file: address, version: present, known: steps.length });
}

async function versionOf(db: Database): Promise<number> {
  const row = await db
    .selectFrom('schema_versions')
    .select(({ fn }) => fn.max('version').as('version'))
    .executeTakeFirst();
  return row?.version ?? 0;
}

/** Returns the version that a release has to know to use the tables. */
async function oldestVersion(db: Database): Promise<number> {
  const row = await db
    .selectFrom('schema_versions')
    .select(({ fn }) => fn.max('needs_version').as('version'))
    .executeTakeFirst();
  return row?.version ?? 0;
}

/** Applies a migration in its own transaction, unless `db` is one already. */
async function apply(db: Database, version: number, step: Migration): Promise<void> {
  const work = async (transaction: Database) => {
    await step(transaction as unknown as Kysely<unknown>);
    await transaction.insertInto('schema_versions').values({ version, applied_at: new Date().toISOString() }).execute();
  };
  await (db.isTransaction ? work(db) : db.transaction().execute(work));
}

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

  // Partial, so that they contain queued and leased inputs, not the history.
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

/** Adds columns of text, one by one, as SQLite requires. Older rows have null. */
async function addTexts(db: Kysely<unknown>, table: string, names: readonly string[]): Promise<void> {
  for (const name of names) await db.schema.alterTable(table).addColumn(name, 'text').execute();
}

/** Adds columns of numbers, which are 0 in older rows. */
async function addNumbers(
  db: Kysely<unknown>,
  table: string,
  names: readonly string[],
  type: 'integer' | 'bigint' = 'integer',
): Promise<void> {
  for (const name of names)
    await db.schema
      .alterTable(table)
      .addColumn(name, type, (column) => column.notNull().defaultTo(0))
      .execute();
}

/** Adds cancellation, listing, idempotency keys, callbacks and traces. */
async function addJobControl(db: Kysely<unknown>): Promise<void> {
  await addTexts(db, 'jobs', ['cancelled_at', 'idempotency_key', 'request_digest']);
  await addNumbers(db, 'jobs', ['has_callback', 'has_url_secrets']);
  await addTexts(db, 'job_requests', ['trace_parent']);

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

/** Adds the sharing of a job's inputs by several nodes, retries of transient failures, and digests of outputs. */
async function addSharing(db: Kysely<unknown>): Promise<void> {
  await addNumbers(db, 'inputs', ['transient_failures']);
  await addNumbers(db, 'inputs', ['bytes_done', 'bytes_total'], 'bigint');
  await addTexts(db, 'inputs', ['delivered_digest']);

  await db.schema
    .createTable('destinations')
    .addColumn('job_id', 'text', (column) => column.notNull().references('jobs.job_id').onDelete('cascade'))
    .addColumn('place', byteOrderedText(db), (column) => column.notNull())
    .addColumn('input_index', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('destinations_key', ['job_id', 'place'])
    .execute();
}

/** Counts exits of the whole service apart from exits of an input's own process. */
async function addServiceEnds(db: Kysely<unknown>): Promise<void> {
  await addNumbers(db, 'inputs', ['service_ends']);
}

/** Adds the callers of jobs, and the table of `probeWrite`. Older jobs have no caller. */
async function addCallers(db: Kysely<unknown>): Promise<void> {
  await addTexts(db, 'jobs', ['caller']);
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

/** Adds what callers recognise jobs by: references, labels and names of inputs. Inputs of older jobs have no names. */
async function addDescriptions(db: Kysely<unknown>): Promise<void> {
  await addTexts(db, 'jobs', ['client_reference']);
  await addTexts(db, 'inputs', ['name']);
  await db.schema
    .createTable('job_labels')
    .addColumn('job_id', 'text', (column) => column.notNull().references('jobs.job_id').onDelete('cascade'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('job_labels_key', ['job_id', 'name'])
    .execute();

  await db.schema
    .createIndex('jobs_client_reference')
    .on('jobs')
    .columns(['client_reference', 'job_id'])
    .where(sql.ref('client_reference'), 'is not', null)
    .execute();
  await db.schema.createIndex('job_requests_operation').on('job_requests').columns(['operation', 'job_id']).execute();
  await db.schema.createIndex('job_labels_value').on('job_labels').columns(['name', 'value', 'job_id']).execute();
}

/** Adds retries. Nothing says which inputs of an older job lost the query of an address, so all of them count as such. */
async function addRetries(db: Kysely<unknown>): Promise<void> {
  await addTexts(db, 'jobs', ['retried_from']);
  await addNumbers(db, 'inputs', ['query_erased']);
  await sql`update inputs set query_erased = 1
    where job_id in (select job_id from jobs where has_url_secrets = 1 and finished_at is not null)`.execute(db);
}

/** Adds the nodes that share the store. */
async function addNodes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('nodes')
    .addColumn('node_id', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('settings', 'text', (column) => column.notNull())
    .addColumn('seen_at_ms', 'bigint', (column) => column.notNull())
    .execute();
}

/**
 * Adds the order of leases. Inputs that wait get the priority that job messages had: by sync, and by the place in the job. On
 * SQLite an index finds the next ones; PostgreSQL finds them by the job messages.
 */
async function addPriorities(db: Kysely<unknown>): Promise<void> {
  await addNumbers(db, 'inputs', ['priority']);
  const isUnfinished = sql`status in ('queued', 'reserved', 'running')`;
  const { rows } = await sql<{ last: number | null }>`
    select max(input_index) as last from inputs where ${isUnfinished}`.execute(db);
  for (let level = 1; 2 ** level - 1 <= (rows[0]?.last ?? 0); level += 1) {
    await sql`update inputs set priority = ${-level} where ${isUnfinished}
      and input_index >= ${2 ** level - 1} and input_index < ${2 ** (level + 1) - 1}`.execute(db);
  }
  await sql`update inputs set priority = priority + 100
    where ${isUnfinished} and job_id in (select job_id from jobs where sync = 1 and finished_at is null)`.execute(db);
  if (leasesByIndex(db)) {
    await db.schema
      .createIndex('inputs_in_order')
      .on('inputs')
      .columns(['priority desc', 'job_id', 'input_index'])
      .where(sql.ref('status'), '=', sql.lit('queued'))
      .execute();
  }
  await db.schema
    .createIndex('jobs_unfinished_of_callers')
    .on('jobs')
    .column('caller')
    .where(sql.ref('finished_at'), 'is', null)
    .execute();
}

/** Adds what each input needs of the deployment, and what one waits for that met an outage. */
async function addDependencies(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('inputs')
    .addColumn('needs', 'text', (column) => column.notNull().defaultTo(''))
    .execute();
  await addTexts(db, 'inputs', ['waiting_for', 'waiting_since', 'waiting_error']);
  await sql`create index inputs_waiting on inputs (job_id, waiting_for)
    where waiting_for is not null and status in ('queued', 'reserved')`.execute(db);
}

/** Adds the retry that has an input. Retries of older releases took all inputs that had failed. */
async function addRetriedInputs(db: Kysely<unknown>): Promise<void> {
  await addTexts(db, 'inputs', ['retried_by']);
  await sql`update inputs set retried_by = retry.job_id
    from (select retried_from, max(job_id) as job_id from jobs where retried_from is not null group by retried_from) as retry
    where inputs.job_id = retry.retried_from and inputs.status = 'failed'`.execute(db);
  await db.schema
    .createIndex('inputs_failed')
    .on('inputs')
    .columns(['job_id', 'retried_by', 'query_erased'])
    .where(sql.ref('status'), '=', sql.lit('failed'))
    .execute();
}

/** Adds the number of cancelled inputs of a job, and the reason of its first failed one. */
async function addCounts(db: Kysely<unknown>): Promise<void> {
  await addNumbers(db, 'jobs', ['inputs_cancelled']);
  await addTexts(db, 'jobs', ['first_reason']);
  await sql`update jobs set inputs_cancelled = (
    select count(*) from inputs where inputs.job_id = jobs.job_id and status = 'cancelled')
    where cancelled_at is not null`.execute(db);
  await sql`update jobs set first_reason = (
    select ${reasonOf(db)} from inputs where inputs.job_id = jobs.job_id and status = 'failed' order by input_index limit 1)
    where inputs_failed > 0`.execute(db);
}

/** Adds the version that a release has to know to use the tables after a migration; null where that only adds. */
async function addOldestRelease(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('schema_versions').addColumn('needs_version', 'integer').execute();
}

/** Adds the identity that a job signs with. An index finds those of unfinished jobs, of which there are few. */
async function addIdentities(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('jobs').addColumn('identity', byteOrderedText(db)).execute();
  await db.schema
    .createIndex('jobs_unfinished_of_identities')
    .on('jobs')
    .column('identity')
    .where(sql.ref('finished_at'), 'is', null)
    .execute();
}
