import type { Database } from './tables.ts';

/** As much as a small job takes with its inputs and indexes: where this can be written, so can one. */
const PADDING = 'x'.repeat(32 * 1024);

/** Writes a row. Rejects where the database cannot be written. */
export async function probeWrite(db: Database): Promise<void> {
  const written = { written_at: new Date().toISOString(), padding: PADDING };
  await db
    .insertInto('write_probe')
    .values({ id: 1, ...written })
    .onConflict((row) => row.column('id').doUpdateSet(written))
    .execute();
}
