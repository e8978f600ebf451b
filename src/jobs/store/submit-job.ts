import { sql } from 'kysely';
import type { Submission } from '../job.ts';
import { insertCallback } from './callbacks.ts';
import { isPostgres } from './dialect.ts';
import { type RecalledJob, recallJob } from './recall-job.ts';
import type { Database } from './tables.ts';
import { holdsUrlSecrets } from './url-secrets.ts';

/** A submission that was given its identifier. */
export interface NewJob extends Submission {
  readonly jobId: string;
  readonly queuedAt: Date;
}

/**
 * Records a job and its inputs; when this is committed, the job may be acknowledged. Where its idempotency key stands
 * for a job already, nothing is written, and that job is the answer; else null.
 */
export async function submitJob(db: Database, job: NewJob): Promise<RecalledJob | null> {
  const { jobId, operation, request, idempotency, callbackUrl, traceParent } = job;
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('jobs')
    .values({
      job_id: jobId,
      sync: job.sync ? 1 : 0,
      status: 'queued',
      queued_at: job.queuedAt.toISOString(),
      inputs_total: request.inputs.length,
      inputs_done: 0,
      inputs_failed: 0,
      bytes_done: 0,
      bytes_total: 0,
      idempotency_key: idempotency?.key ?? null,
      request_digest: idempotency?.digest ?? null,
      has_callback: callbackUrl == null ? 0 : 1,
      has_url_secrets: holdsUrlSecrets(request) ? 1 : 0,
    })
    .onConflict((row) => row.column('idempotency_key').where('idempotency_key', 'is not', null).doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows === 0n && idempotency != null) return recallJob(db, idempotency.key);
  await db
    .insertInto('job_requests')
    .values({
      job_id: jobId,
      operation,
      output: jsonOf(request.output),
      params: jsonOf(request.params),
      trace_parent: traceParent ?? null,
    })
    .execute();
  await insertInputs(db, jobId, request.inputs);
  if (callbackUrl != null) await insertCallback(db, jobId, callbackUrl);
  return null;
}

/** One statement, whatever their number: a batch may have 10,000. */
async function insertInputs(db: Database, jobId: string, inputs: readonly unknown[]): Promise<void> {
  const elements = isPostgres(db)
    ? sql`select (ordinality - 1)::integer as key, value #>> '{}' as value
        from jsonb_array_elements(${JSON.stringify(inputs.map(jsonOf))}::jsonb) with ordinality`
    : sql`select key, value from json_each(${JSON.stringify(inputs)})`;
  await sql`insert into inputs (job_id, input_index, status, input)
    select ${jobId}, key, 'queued', value from (${elements}) as elements`.execute(db);
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value ?? null);
}
