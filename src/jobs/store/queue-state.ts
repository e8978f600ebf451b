import { type ExpressionBuilder, sql } from 'kysely';
import type { Database, Tables } from './tables.ts';

/** What waits and runs, of all nodes. */
export interface QueueState {
  readonly queued: number;
  readonly reserved: number;
  readonly running: number;
  /** When the job was submitted whose input waits longest; null where none does. */
  readonly oldestQueuedAt: string | null;
  readonly callbacks: number;
}

/** Counts what waits and runs. */
export async function queueState(db: Database): Promise<QueueState> {
  const queued = await db.selectFrom('inputs').select(countOf).where(isQueued).executeTakeFirstOrThrow();
  const claimed = await db
    .selectFrom('inputs')
    .select(['status', countOf])
    .where(sql<boolean>`status in ('reserved', 'running')`)
    .groupBy('status')
    .execute();
  const oldest = await db
    .selectFrom('jobs')
    .select('queued_at')
    .where('job_id', '=', ({ selectFrom }) =>
      selectFrom('inputs')
        .select(({ fn }) => fn.min('job_id').as('job_id'))
        .where(isQueued),
    )
    .executeTakeFirst();
  const callbacks = await db
    .selectFrom('callbacks')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('next_attempt_at', 'is not', null)
    .executeTakeFirstOrThrow();
  const claimedIn = (status: string) => Number(claimed.find((row) => row.status === status)?.count ?? 0);
  return {
    queued: Number(queued.count),
    reserved: claimedIn('reserved'),
    running: claimedIn('running'),
    oldestQueuedAt: oldest?.queued_at ?? null,
    callbacks: Number(callbacks.count),
  };
}

/** Written into the statement, not given as a value: so the engine sees that the index of queued inputs will do. */
const isQueued = sql<boolean>`status = 'queued'`;

const countOf = ({ fn }: ExpressionBuilder<Tables, 'inputs'>) => fn.countAll().as('count');
