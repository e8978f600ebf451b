import { sql } from 'kysely';
import type { AppErrorData } from '#errors/app-error.ts';
import { SIGNER } from '../dependencies.ts';
import type { LeaseFilter, WaitingInputs } from './job-store.ts';
import type { Database } from './tables.ts';

// Dependencies are recorded with each input, so that a lease can leave out what needs one that is away. Their names hold no
// spaces (`dependencies.ts`).

/** Returns the text of a list of dependencies, with a space before and behind each. */
export function needsText(needs: readonly string[]): string {
  return needs.length === 0 ? '' : ` ${needs.join(' ')} `;
}

export function needsIn(text: string): readonly string[] {
  return text.split(' ').filter((name) => name !== '');
}

/** Makes the condition that an input needs one of the dependencies. */
export function needsAny(dependencies: readonly string[]) {
  if (dependencies.length === 0) return NEVER;
  // A pattern of LIKE would take "_" in a name for any character.
  return sql<boolean>`(${sql.join(
    dependencies.map((name) => sql`replace(needs, ${` ${name} `}, '') <> needs`),
    sql` or `,
  )})`;
}

/** The part of a filter that is about what inputs need. */
export type NeedsFilter = Pick<LeaseFilter, 'withoutDependencies' | 'overdueBefore' | 'onlySigners'>;

/** Makes the condition that an input is left out because of what it needs: see `LeaseFilter`. */
export function isLeftOut({ withoutDependencies, overdueBefore, onlySigners }: NeedsFilter) {
  const isAway = sql<boolean>`(${needsAny(withoutDependencies)} and (waiting_since is null or waiting_since >= ${overdueBefore}))`;
  const isForOthers = onlySigners === null ? NEVER : sql<boolean>`(${needsSigner} and not ${needsAny(onlySigners)})`;
  return sql<boolean>`(${withoutDependencies.length === 0 ? NEVER : isAway} or ${isForOthers})`;
}

const NEVER = sql<boolean>`1 = 0`;

/** An input needs one signer at most. */
const needsSigner = sql<boolean>`replace(needs, ${` ${SIGNER}`}, '') <> needs`;

/** Implements `JobStore.identitiesBeside`. By ranges between the names, so that the index is not read where all are known. */
export async function identitiesBeside(db: Database, identities: readonly string[]): Promise<readonly string[]> {
  const names = identities.toSorted();
  const ranges = [...names, null].map((name, index) => {
    const [after, before] = [sql`identity > ${names[index - 1] ?? ''}`, sql`identity < ${name}`];
    return name === null ? after : sql`${after} and ${before}`;
  });
  const jobs = await db
    .selectFrom('jobs')
    .select('identity')
    .distinct()
    .where(sql<boolean>`finished_at is null`)
    .where(sql<boolean>`(${sql.join(ranges, sql` or `)})`)
    .execute();
  return jobs.flatMap(({ identity }) => identity ?? []);
}

/** Implements `JobStore.recordWaiting`. The error is that of the outage in force, so that it is not told after its end. */
export async function recordWaiting(db: Database, dependency: string, since: string): Promise<void> {
  await db
    .updateTable('inputs')
    .set({ waiting_for: dependency, waiting_since: since })
    // As the partial index says it.
    .where(sql<boolean>`status = 'queued'`)
    .where('waiting_for', 'is', null)
    .where(needsAny([dependency]))
    .execute();
}

/** Implements `JobStore.countNeeding`. */
export async function countNeeding(db: Database, dependencies: readonly string[]): Promise<number> {
  if (dependencies.length === 0) return 0;
  const { count } = await db
    .selectFrom('inputs')
    .select(({ fn }) => fn.countAll().as('count'))
    .where(sql<boolean>`status = 'queued'`)
    .where(needsAny(dependencies))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Implements `JobStore.countWaiting`. */
export async function countWaiting(db: Database): Promise<readonly (readonly [dependency: string, count: number])[]> {
  const waiting = await db
    .selectFrom('inputs')
    .select(({ fn }) => ['waiting_for as dependency', fn.countAll().as('count')])
    // As the partial index says it.
    .where(sql<boolean>`waiting_for is not null and status in ('queued', 'reserved')`)
    .groupBy('waiting_for')
    .execute();
  return waiting.map(({ dependency, count }) => [dependency ?? '', Number(count)]);
}

/** Implements `JobStore.waitingInputs`. */
export async function waitingInputs(
  db: Database,
  jobIds: readonly string[],
  away: readonly string[],
): Promise<readonly WaitingInputs[]> {
  if (jobIds.length === 0) return [];
  const met = await db
    .selectFrom('inputs')
    .select(({ fn }) => [
      'job_id as jobId',
      'waiting_for as dependency',
      fn.countAll().as('count'),
      fn.min('waiting_since').as('since'),
      fn.max('waiting_error').as('error'),
    ])
    .where('job_id', 'in', jobIds)
    // As the partial index says it.
    .where(sql<boolean>`waiting_for is not null and status in ('queued', 'reserved')`)
    .groupBy(['job_id', 'waiting_for'])
    .execute();
  const all = met.map(({ jobId, dependency, count, since, error }) => ({
    jobId,
    dependency: dependency ?? '',
    count: Number(count),
    since,
    error: error === null ? null : (JSON.parse(error) as AppErrorData),
  }));
  for (const dependency of away) {
    const others = await db
      .selectFrom('inputs')
      .select(({ fn }) => ['job_id as jobId', fn.countAll().as('count')])
      .where('job_id', 'in', jobIds)
      .where(sql<boolean>`status = 'queued'`)
      .where('waiting_for', 'is', null)
      .where(needsAny([dependency]))
      .groupBy('job_id')
      .execute();
    for (const { jobId, count } of others)
      all.push({ jobId, dependency, count: Number(count), since: null, error: null });
  }
  return [...Map.groupBy(all, ({ jobId, dependency }) => `${jobId} ${dependency}`).values()].flatMap(sumOfWaiting);
}

/** Adds the inputs of a job that need a dependency to those that met its outage, which come first and tell of it. */
function sumOfWaiting([first, ...others]: readonly WaitingInputs[]): readonly WaitingInputs[] {
  if (first === undefined) return [];
  return [{ ...first, count: others.reduce((sum, { count }) => sum + count, first.count) }];
}
