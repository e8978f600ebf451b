import { sql } from 'kysely';
import type { ByteProgress, Claim } from '../job.ts';
import { isCurrent } from './end-input.ts';
import type { Database } from './tables.ts';

/** Records how far inputs are that run, for other nodes to tell. */
export async function noteProgress(db: Database, running: readonly (Claim & ByteProgress)[]): Promise<void> {
  for (const { bytesDone, bytesTotal, ...claim } of running) {
    await db
      .updateTable('inputs')
      .set({ bytes_done: bytesDone, bytes_total: bytesTotal })
      .where(isCurrent(claim))
      .execute();
  }
}

/** How many inputs wait to be started, of all nodes. */
export async function countQueued(db: Database): Promise<number> {
  const { count } = await db
    .selectFrom('inputs')
    .select(({ fn }) => fn.countAll().as('count'))
    .where(sql<boolean>`status = 'queued'`)
    .executeTakeFirstOrThrow();
  return Number(count);
}
