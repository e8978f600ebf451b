import { CompiledQuery } from 'kysely';
import type { Database } from './tables.ts';

/** Each connection keeps all that it was sent; what comes when there are so many is planned every time. */
const MAX_STATEMENTS = 100;

const names = new Map<string, string>();

/**
 * Runs a statement whose text is always the same. A PostgreSQL server parses and plans it once for each connection:
 * measured, that took longer than to execute it. It names the columns it answers with, for what stands for all of them may
 * change while nodes run.
 */
export async function runPrepared<Row>(
  db: Database,
  text: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  if (!names.has(text) && names.size < MAX_STATEMENTS) names.set(text, `attestream_${names.size}`);
  return (await db.executeQuery<Row>(CompiledQuery.raw(text, [...values]))).rows;
}

/** What connections call a statement that is prepared; undefined where it is not. */
export function preparedName(text: string): string | undefined {
  return names.get(text);
}
