import { type ExpressionBuilder, sql } from 'kysely';
import { dependencyOf, SIGNER } from '../dependencies.ts';
import type { LeaseFilter, QueuedCounts, QueueState } from './job-store.ts';
import { identitiesBeside, isLeftOut, type NeedsFilter, needsIn } from './needs.ts';
import type { Database, Tables } from './tables.ts';

/** Bound on jobs that a node excludes, because they stand in a statement. */
const MAX_EXCLUDED_JOBS = 10_000;
/** Bound on groups that a node excludes because of what they need: the default of `worker.queue_capacity`. */
const MAX_EXCLUDED_GROUPS = 100_000;

/** Implements `JobStore.queueState`. */
export async function queueState(db: Database): Promise<QueueState> {
  const queued = await db.selectFrom('inputs').select(countOf).where(isQueued).executeTakeFirstOrThrow();
  const leased = await db
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
  const leasedAs = (status: string) => Number(leased.find((row) => row.status === status)?.count ?? 0);
  return {
    queued: Number(queued.count),
    reserved: leasedAs('reserved'),
    running: leasedAs('running'),
    oldestQueuedAt: oldest?.queued_at ?? null,
    callbacks: Number(callbacks.count),
  };
}

/** Implements `JobStore.countQueued`. */
export async function countQueued(db: Database): Promise<QueuedCounts> {
  // Inputs are counted by job first: a batch is many inputs of one job.
  const counts = await db
    .selectFrom(({ selectFrom }) =>
      selectFrom('inputs').select(['job_id', countOf]).where(isQueued).groupBy('job_id').as('queued'),
    )
    .innerJoin('jobs', 'jobs.job_id', 'queued.job_id')
    .select(({ fn }) => ['caller', fn.sum('queued.count').as('count')])
    // Every job with a queued input is unfinished: the history is not read.
    .where('jobs.finished_at', 'is', null)
    .groupBy('caller')
    .execute();
  return new Map(counts.map(({ caller, count }) => [caller, Number(count)]));
}

/** A part of a job that needs the same dependencies: the group of its job messages. */
export interface InputGroup {
  readonly jobId: string;
  readonly needs: readonly string[];
}

/** Returns the groups of unfinished inputs that a filter leaves out for what they need. */
async function groupsNeeding(db: Database, filter: NeedsFilter): Promise<readonly InputGroup[]> {
  const { withoutDependencies, onlySigners } = filter;
  if (withoutDependencies.length === 0 && (onlySigners === null || !(await hasOtherSigners(db, onlySigners))))
    return [];
  // The message of a leased input comes back when its node is lost.
  return groupsOf(await groups(db).where(isUnfinished).where(isLeftOut(filter)).limit(MAX_EXCLUDED_GROUPS).execute());
}

/** Tells whether jobs may need another signer than these. Those of older releases need `SIGNER`, and do not say which. */
async function hasOtherSigners(db: Database, signers: readonly string[]): Promise<boolean> {
  if (!signers.includes(SIGNER)) return true;
  return (
    (
      await identitiesBeside(
        db,
        signers.flatMap((id) => dependencyOf(id)?.name ?? []),
      )
    ).length > 0
  );
}

/** The time for which groups that were read count, in milliseconds. */
const GROUPS_AGE_MS = 10_000;

/**
 * Finds the groups that filters leave out. Remembers those of queued inputs of jobs for a while: to read them takes as long as the
 * jobs have inputs, and only an outage adds to the groups of a job.
 */
export class LeftOutGroups {
  readonly #known = new Map<string, { readonly groups: readonly InputGroup[]; readonly readAtMs: number }>();

  /** Returns the groups that a filter leaves out; null where they are all, or too many to be left out. */
  async of(db: Database, filter: LeaseFilter): Promise<readonly InputGroup[] | null> {
    const jobIds = await jobsLeftOut(db, filter);
    if (jobIds === null) return null;
    // Messages of releases that recorded no dependencies.
    const withoutNeeds = jobIds.map((jobId) => ({ jobId, needs: [] }));
    return [...withoutNeeds, ...(await this.#ofJobs(db, jobIds)), ...(await groupsNeeding(db, filter))];
  }

  async #ofJobs(db: Database, jobIds: readonly string[]): Promise<readonly InputGroup[]> {
    const nowMs = performance.now();
    for (const [jobId, { readAtMs }] of this.#known) if (nowMs - readAtMs > GROUPS_AGE_MS) this.#known.delete(jobId);
    const unknown = jobIds.filter((jobId) => !this.#known.has(jobId));
    const rows = unknown.length === 0 ? [] : await groups(db).where(isQueued).where('job_id', 'in', unknown).execute();
    for (const [jobId, groups] of Map.groupBy(groupsOf(rows), (group) => group.jobId))
      this.#known.set(jobId, { groups, readAtMs: nowMs });
    return jobIds.flatMap((jobId) => this.#known.get(jobId)?.groups ?? []);
  }
}

/**
 * Returns the unfinished jobs that a filter leaves out whatever they need. Null where they are more than 10,000; and where all are of
 * callers that it leaves out: to find no message of another one takes a scan of all messages.
 */
export async function jobsLeftOut(
  db: Database,
  { onlyJobs, withoutJobs, withoutCallers }: LeaseFilter,
): Promise<readonly string[] | null> {
  if (onlyJobs === null && withoutCallers.length === 0) return withoutJobs;
  const unfinished = db.selectFrom('jobs').select('job_id').where('status', 'in', ['queued', 'running']);
  const isOfOthers = sql<boolean>`(caller is null or caller <> all(${withoutCallers}::text[]))`;
  if (withoutCallers.length > 0 && (await unfinished.where(isOfOthers).limit(1).execute()).length === 0) return null;
  const isLeftOut = [
    sql<boolean>`caller = any(${withoutCallers}::text[])`,
    ...(onlyJobs === null ? [] : [sql<boolean>`job_id <> all(${onlyJobs}::text[])`]),
  ];
  const jobs = await unfinished
    .where(({ or }) => or(isLeftOut))
    .limit(MAX_EXCLUDED_JOBS + 1)
    .execute();
  return jobs.length > MAX_EXCLUDED_JOBS ? null : [...withoutJobs, ...jobs.map((job) => job.job_id)];
}

function groups(db: Database) {
  return db.selectFrom('inputs').select(['job_id as jobId', 'needs']).distinct();
}

function groupsOf(rows: readonly { readonly jobId: string; readonly needs: string }[]): readonly InputGroup[] {
  return rows.map(({ jobId, needs }) => ({ jobId, needs: needsIn(needs) }));
}

/** A literal, so that the planner can use the partial index of queued inputs. */
const isQueued = sql<boolean>`status = 'queued'`;

/** As the partial indexes say it: that of queued inputs, and that of leased ones. */
const isUnfinished = sql<boolean>`(status = 'queued' or status in ('reserved', 'running'))`;

const countOf = ({ fn }: ExpressionBuilder<Tables, 'inputs'>) => fn.countAll().as('count');
