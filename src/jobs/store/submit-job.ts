import { sql } from 'kysely';
import type { ApiInputRef } from '#contract/request.ts';
import { requestedName } from '#inputs/input-name.ts';
import { insertCallback } from './callbacks.ts';
import { givenRows } from './dialect.ts';
import type { KnownJob, NewJob } from './job-store.ts';
import type { Database } from './tables.ts';
import { hasUrlSecrets, withoutQueries } from './url-secrets.ts';

/** Implements `JobStore.submitJob`. */
export async function submitJob(db: Database, job: NewJob): Promise<KnownJob | null> {
  const [known = null] = await submitJobs(db, [job]);
  return known;
}

/** Records several jobs, as `submitJob` does each; the answers are in their order. */
export async function submitJobs(db: Database, jobs: readonly NewJob[]): Promise<readonly (KnownJob | null)[]> {
  const added = await insertJobs(db, jobs);
  const newJobs = jobs.filter(({ jobId }) => added.has(jobId));
  if (newJobs.length > 0) {
    await db.insertInto('job_requests').values(newJobs.map(requestRow)).execute();
    await insertLabels(db, newJobs);
    await insertInputs(db, newJobs);
  }
  const answers: (KnownJob | null)[] = [];
  for (const { jobId, callbackUrl, idempotency } of jobs) {
    const isNew = added.has(jobId);
    if (isNew && callbackUrl != null) await insertCallback(db, jobId, callbackUrl);
    answers.push(isNew || idempotency == null ? null : await findByIdempotencyKey(db, idempotency.key));
  }
  return answers;
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
  const { jobId, sync, queuedAt, request, clientReference, retriedFrom, idempotency, callbackUrl, caller } = job;
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

const INPUT_COLUMNS = { job_id: 'text', input_index: 'integer', input: 'text', name: 'text' } as const;

/** Inserts all inputs by one statement: a job may have 10,000. */
async function insertInputs(db: Database, jobs: readonly NewJob[]): Promise<void> {
  const rows = jobs.flatMap(({ jobId, request }) =>
    request.inputs.map((input, index) => ({
      job_id: jobId,
      input_index: index,
      input: jsonOf(input),
      name: jsonOf(nameOf(input, index)),
    })),
  );
  await sql`insert into inputs (job_id, input_index, status, input, name)
    select job_id, input_index, 'queued', input, name from ${givenRows(db, INPUT_COLUMNS, rows)} as given`.execute(db);
}

/** Returns the name that callers see. The query of an address may grant access, so it is no part of it. */
function nameOf(input: ApiInputRef, index: number): string {
  return requestedName(withoutQueries(input) as ApiInputRef, index);
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value ?? null);
}
