import { type Kysely, PostgresAdapter } from 'kysely';

/** Whether the database is PostgreSQL, not SQLite: for the few statements that the two do not share. */
export function isPostgres<Tables>(db: Kysely<Tables>): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}
