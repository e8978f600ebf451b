import { sql } from 'kysely';
import type { ApiInputRef } from '#contract/request.ts';
import { requestedName } from '#inputs/input-name.ts';
import type { InputId } from '../job.ts';
import { insertCallback } from './callbacks.ts';
import { givenRows } from './dialect.ts';
import type { KnownJob, NewJob } from './job-store.ts';
import { needsIn, needsText } from './needs.ts';
import { MAX_COUNTED_BACKLOG, priorityOf } from './priority.ts';
import { findRetry, recordOnlyRetries, recordRetries } from './retried-inputs.ts';
import type { Database } from './tables.ts';
import { hasUrlSecrets, withoutQueries } from './url-secrets.ts';

/** An input that waits, as the queue of job messages needs it. */
export interface QueuedInput extends InputId {
  readonly priority: number;
  readonly needs: readonly string[];
}

/** Implements `JobStore.submitJob`. */
export async function submitJob(db: Database, job: NewJob): Promise<KnownJob | null> {
  const { answers } = await submitJobs(db, [job]);
  return answers[0] ?? null;
}

/** Records several jobs, as `submitJob` does each. Returns the answers in their order, and the inputs that are queued now. */
export async function submitJobs(
  db: Database,
  jobs: readonly NewJob[],
): Promise<{ readonly answers: readonly (KnownJob | null)[]; readonly queued: readonly QueuedInput[] }> {
  const late = await recordOnlyRetries(db, jobs);
  const asked = jobs.filter((job) => !late.has(job));
  const backlogs = await backlogsOf(db, asked);
  const added = await insertJobs(db, asked);
  const newJobs = jobs.filter(({ jobId }) => added.has(jobId));
  const inputs = newJobs.flatMap((job) => inputRows(job, backlogs));
  if (newJobs.length > 0) {
    await db.insertInto('job_requests').values(newJobs.map(requestRow)).execute();
    await insertLabels(db, newJobs);
    await insertInputs(db, inputs);
    await recordRetries(db, newJobs);
  }
  const answers: (KnownJob | null)[] = [];
  for (const job of jobs) {
    const isNew = added.has(job.jobId);
    if (isNew && job.callbackUrl != null) await insertCallback(db, job.jobId, job.callbackUrl);
    answers.push(isNew ? null : await knownJob(db, job));
  }
  const queued = inputs.map(({ job_id, input_index, priority, needs }) => ({
    jobId: job_id,
    inputIndex: input_index,
    priority,
    needs: needsIn(needs),
  }));
  return { answers, queued };
}

/** Returns the job that was there in the place of a new one. */
async function knownJob(db: Database, job: NewJob): Promise<KnownJob | null> {
  if (job.idempotency != null) return findByIdempotencyKey(db, job.idempotency.key);
  return job.retriedInputs === undefined ? null : findRetry(db, job, job.retriedInputs);
}

/** Implements `JobStore.findByIdempotencyKey`. */
export async function findByIdempotencyKey(db: Database, key: string): Promise<KnownJob | null> {
  const job = await db
    .selectFrom('jobs')
    .select(['job_id as jobId', 'status', 'request_digest as digest'])
    .where('idempotency_key', '=', key)
    .executeTakeFirst();
  return job === undefined ? null : { ...job, digest: job.digest ?? '' };
}

/** Inserts the jobs whose idempotency keys are new, and returns their identifiers. */
async function insertJobs(db: Database, jobs: readonly NewJob[]): Promise<ReadonlySet<string>> {
  // In the order of their keys, so that two transactions with several jobs cannot deadlock.
  const inOrder = jobs.toSorted((a, b) => compare(a.idempotency?.key ?? '', b.idempotency?.key ?? ''));
  if (jobs.length === 0) return new Set();
  const added = await db
    .insertInto('jobs')
    .values(inOrder.map(jobRow))
    .onConflict((row) => row.column('idempotency_key').where('idempotency_key', 'is not', null).doNothing())
    .returning('job_id')
    .execute();
  return new Set(added.map((job) => job.job_id));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function jobRow(job: NewJob) {
  const { jobId, sync, queuedAt, request, identity, clientReference, retriedFrom, idempotency, callbackUrl, caller } =
    job;
  return {
    job_id: jobId,
    sync: sync ? 1 : 0,
    status: 'queued' as const,
    queued_at: queuedAt.toISOString(),
    inputs_total: request.inputs.length,
    inputs_done: 0,
    inputs_failed: 0,
    bytes_done: 0,
    bytes_total: 0,
    caller: caller ?? null,
    identity: identity ?? null,
    client_reference: clientReference ?? null,
    retried_from: retriedFrom ?? null,
    idempotency_key: idempotency?.key ?? null,
    request_digest: idempotency?.digest ?? null,
    has_callback: callbackUrl == null ? 0 : 1,
    has_url_secrets: hasUrlSecrets(request) ? 1 : 0,
  };
}

function requestRow({ jobId, operation, request, traceParent }: NewJob) {
  return {
    job_id: jobId,
    operation,
    output: jsonOf(request.output),
    params: jsonOf(request.params),
    trace_parent: traceParent ?? null,
  };
}

async function insertLabels(db: Database, jobs: readonly NewJob[]): Promise<void> {
  const rows = jobs.flatMap(({ jobId, labels }) =>
    Object.entries(labels ?? {}).map(([name, value]) => ({ job_id: jobId, name, value })),
  );
  if (rows.length > 0) await db.insertInto('job_labels').values(rows).execute();
}

/**
 * Returns the number of unfinished inputs of each caller, as far as they are counted. Every unfinished job has one at least,
 * so few jobs are read.
 */
async function backlogsOf(db: Database, jobs: readonly NewJob[]): Promise<Map<string, number>> {
  const callers = [...new Set(jobs.flatMap(({ caller }) => caller ?? []))];
  if (callers.length === 0) return new Map();
  const given = givenRows(
    db,
    { caller: 'text' },
    callers.map((caller) => ({ caller })),
  );
  const { rows } = await sql<{ caller: string; backlog: number }>`
    select caller, (
      select coalesce(sum(left_over), 0) from (
        select inputs_total - inputs_done as left_over from jobs
        where jobs.caller = given.caller and finished_at is null limit ${MAX_COUNTED_BACKLOG}) as unfinished
    ) as backlog from ${given} as given`.execute(db);
  return new Map(rows.map(({ caller, backlog }) => [caller, Number(backlog)]));
}

const INPUT_COLUMNS = {
  job_id: 'text',
  input_index: 'integer',
  input: 'text',
  name: 'text',
  priority: 'integer',
  needs: 'text',
} as const;

/** Returns the rows of the inputs of a new job, and adds them to the backlog of its caller. */
function inputRows({ jobId, sync, caller, needs, request: { inputs } }: NewJob, backlogs: Map<string, number>) {
  const backlog = caller == null ? 0 : (backlogs.get(caller) ?? 0);
  if (caller != null) backlogs.set(caller, backlog + inputs.length);
  return inputs.map((input, inputIndex) => ({
    job_id: jobId,
    input_index: inputIndex,
    input: jsonOf(input),
    name: jsonOf(nameOf(input, inputIndex)),
    priority: priorityOf({ sync, inputIndex, backlog }),
    needs: needsText(needs?.[inputIndex] ?? []),
  }));
}

/** Inserts all inputs by one statement: a job may have 10,000. */
async function insertInputs(db: Database, rows: readonly ReturnType<typeof inputRows>[number][]): Promise<void> {
  await sql`insert into inputs (job_id, input_index, status, input, name, priority, needs)
    select job_id, input_index, 'queued', input, name, priority, needs
    from ${givenRows(db, INPUT_COLUMNS, rows)} as given`.execute(db);
}

/** Returns the name that callers see. The query of an address may grant access, so it is no part of it. */
function nameOf(input: ApiInputRef, index: number): string {
  return requestedName(withoutQueries(input) as ApiInputRef, index);
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value ?? null);
}
