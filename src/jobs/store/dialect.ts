import { type AliasedRawBuilder, type Kysely, PostgresAdapter, type RawBuilder, sql } from 'kysely';
import type { Database, Tables } from './tables.ts';

// Everything that differs between SQLite and PostgreSQL in the statements that both run.

function isPostgres(db: Kysely<Tables>): boolean {
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

/** Returns true where transactions run at the same time, and lock rows. SQLite runs one after another. */
export function hasRowLocks(db: Database): boolean {
  return isPostgres(db);
}

/** The columns of given rows, with their types. */
export type ColumnTypes = Readonly<Record<string, 'text' | 'integer' | 'bigint'>>;

type GivenRow<Columns extends ColumnTypes> = {
  readonly [C in keyof Columns]: Columns[C] extends 'text' ? string : number;
};

/** Makes a table of given rows, in their order. They are one JSON value: databases limit the values of a statement. */
export function givenRows<Columns extends ColumnTypes, Alias extends string>(
  db: Database,
  alias: Alias,
  columns: Columns,
  rows: readonly { readonly [C in keyof Columns]: string | number | null }[],
): AliasedRawBuilder<GivenRow<Columns>, Alias> {
  const json = JSON.stringify(rows);
  const names = Object.keys(columns);
  const table = isPostgres(db)
    ? sql`(select * from json_to_recordset(${json}::text::json)
        as given(${sql.join(names.map((name) => sql`${sql.ref(name)} ${sql.raw(columns[name] ?? 'text')}`))}))`
    : sql`(select ${sql.join(names.map((name) => sql`value ->> ${sql.lit(name)} as ${sql.ref(name)}`))}
        from json_each(${json}))`;
  return (table as RawBuilder<GivenRow<Columns>>).as(alias);
}

/** Makes the JSON of the labels of a job; null or `{}` where it has none. */
export function labelsOf(db: Database) {
  const labels = isPostgres(db)
    ? sql`json_object_agg(name, value order by name)::text`
    : sql`json_group_object(name, value order by name)`;
  return sql<string | null>`(select ${labels} from job_labels where job_labels.job_id = jobs.job_id)`;
}

/** Sums an expression over the running inputs of a running job; null on SQLite, which does not record their progress. */
export function sumOfRunning(db: Database, expression: RawBuilder<unknown>): RawBuilder<number | null> {
  if (!isPostgres(db)) return sql<null>`null`;
  return sql<number | null>`case when jobs.status = 'running' then (
    select sum(${expression}) from inputs where inputs.job_id = jobs.job_id and inputs.status = 'running') end`;
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
