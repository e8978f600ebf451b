import { type Kysely, PostgresAdapter, type RawBuilder, sql } from 'kysely';
import type { Database, Tables } from './tables.ts';

// Everything that differs between SQLite and PostgreSQL in the statements that both run.

function isPostgres(db: Kysely<Tables> | Kysely<unknown>): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** The time by the clock of a PostgreSQL database, in milliseconds since 1970. */
export const POSTGRES_NOW_MS = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/** Returns the time in milliseconds since 1970: on PostgreSQL that of the database, because the clocks of nodes differ. */
export async function databaseTimeMs(db: Database): Promise<number> {
  if (!isPostgres(db)) return Date.now();
  const { rows } = await sql<{ nowMs: number }>`select ${POSTGRES_NOW_MS} as "nowMs"`.execute(db);
  return rows[0]?.nowMs ?? Date.now();
}

/** Returns true where the table of inputs is the queue. PostgreSQL has a queue of job messages. */
export function leasesByIndex(db: Kysely<unknown>): boolean {
  return !isPostgres(db);
}

/** The columns of given rows, with their types. */
export type ColumnTypes = Readonly<Record<string, 'text' | 'integer' | 'bigint'>>;

/** Makes a subquery of given rows, in their order. They are one JSON value: databases limit the values of a statement. */
export function givenRows<Columns extends ColumnTypes>(
  db: Database,
  columns: Columns,
  rows: readonly { readonly [C in keyof Columns]: string | number | null }[],
): RawBuilder<unknown> {
  const types = Object.entries(columns);
  const json = JSON.stringify(rows);
  if (isPostgres(db)) {
    const list = types.map(([name, type]) => `${name} ${type}`).join(', ');
    return sql`(select * from json_to_recordset(${json}::text::json) as element(${sql.raw(list)}))`;
  }
  const list = types.map(([name]) => `value ->> '${name}' as ${name}`).join(', ');
  return sql`(select ${sql.raw(list)} from json_each(${json}))`;
}

/** Locks the rows of a table that a query returns, in their order, where transactions run at the same time. */
export function lockOf(db: Database, table: 'jobs'): RawBuilder<unknown> {
  return sql.raw(isPostgres(db) ? `for no key update of ${table}` : '');
}

/** Makes the text of a JSON object, with these fields from these columns. */
export function jsonObject(db: Database, fields: Readonly<Record<string, string>>): RawBuilder<unknown> {
  const members = sql.raw(
    Object.entries(fields)
      .flatMap(([name, column]) => [`'${name}'`, column])
      .join(', '),
  );
  return isPostgres(db) ? sql`json_build_object(${members})::text` : sql`json_object(${members})`;
}

/** Makes the reason of a result entry; null where the input did not fail. */
export function reasonOf(db: Kysely<Tables> | Kysely<unknown>): RawBuilder<string | null> {
  return isPostgres(db) ? sql`result::json #>> '{error_details,reason}'` : sql`result ->> '$.error_details.reason'`;
}

/** Makes the JSON of the labels of a job; null or `{}` where it has none. */
export function labelsOf(db: Database) {
  const labels = isPostgres(db) ? sql`json_object_agg(name, value)::text` : sql`json_group_object(name, value)`;
  return sql<string | null>`(select ${labels} from (
    select name, value from job_labels where job_labels.job_id = jobs.job_id order by name) as ordered)`;
}

/**
 * Keeps SQLite, which has no statistics, from finding jobs by the index of a column: it would sort all that it finds.
 * PostgreSQL chooses by its statistics.
 */
export function withoutIndex(db: Database, column: string): RawBuilder<unknown> {
  return isPostgres(db) ? sql.ref(column) : sql`+${sql.ref(column)}`;
}

/**
 * Returns the columns that bound a page of jobs, which is ordered by `jobId`. PostgreSQL knows equal columns by their joins,
 * but no bounds of theirs: it would merge what the pages before have, too.
 */
export function boundedColumns(db: Database, jobId: string): readonly RawBuilder<string>[] {
  const columns = isPostgres(db) ? [jobId, 'jobs.job_id', 'job_requests.job_id'] : [jobId];
  return columns.map((column) => sql.ref<string>(column));
}

/**
 * Serializes transactions that reserve output paths of a job; SQLite serializes every transaction. Turns off the wait for
 * the disk, because a reservation need not outlive the database: its input is run again.
 */
export async function lockForReservation(db: Database, jobId: string): Promise<void> {
  if (!isPostgres(db)) return;
  await sql`select set_config('synchronous_commit', 'off', true)
    from job_requests where job_id = ${jobId} for update`.execute(db);
}

/** Returns the type of text that is compared byte by byte, so that the paths inside a folder form a range. */
export function byteOrderedText(db: Kysely<unknown>): RawBuilder<unknown> {
  return isPostgres(db) ? sql`text collate "C"` : sql`text`;
}
