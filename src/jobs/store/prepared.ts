import { CompiledQuery } from 'kysely';
import { isPostgres } from './dialect.ts';
import type { Database } from './tables.ts';

/** Each connection keeps all that it was sent; what comes when there are so many is planned every time. */
const MAX_STATEMENTS = 100;

const names = new Map<string, string>();

/** Statements as SQLite takes them, by their text. */
const sqliteTexts = new Map<string, string>();

/**
 * Runs a statement whose text is always the same; values stand in it as `$1` and so on, in their order and each once
 * where SQLite is to run it too. To build one of parts took as long there as to run it. A PostgreSQL server parses and
 * plans it once for each connection: measured, that took longer than to execute it. It names the columns it answers with,
 * for what stands for all of them may change while nodes run.
 */
export async function runPrepared<Row>(
  db: Database,
  text: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  if (!isPostgres(db)) return (await db.executeQuery<Row>(CompiledQuery.raw(sqliteText(text), [...values]))).rows;
  if (!names.has(text) && names.size < MAX_STATEMENTS) names.set(text, `attestream_${names.size}`);
  return (await db.executeQuery<Row>(CompiledQuery.raw(text, [...values]))).rows;
}

function sqliteText(text: string): string {
  const known = sqliteTexts.get(text);
  if (known !== undefined) return known;
  const translated = text.replace(/\$\d+/g, '?');
  if (sqliteTexts.size < MAX_STATEMENTS) sqliteTexts.set(text, translated);
  return translated;
}

/** What connections call a statement that is prepared; undefined where it is not. */
export function preparedName(text: string): string | undefined {
  return names.get(text);
}
