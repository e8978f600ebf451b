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

/** How far the running inputs of a job are, together. */
export async function progressOfRunning(db: Database, jobId: string): Promise<ByteProgress> {
  const { bytesDone, bytesTotal } = await db
    .selectFrom('inputs')
    .select(({ fn }) => [fn.sum('bytes_done').as('bytesDone'), fn.sum('bytes_total').as('bytesTotal')])
    .where('job_id', '=', jobId)
    .where('status', '=', 'running')
    .executeTakeFirstOrThrow();
  return { bytesDone: Number(bytesDone ?? 0), bytesTotal: Number(bytesTotal ?? 0) };
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
