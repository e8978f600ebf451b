import type { Submission } from '../job.ts';
import type { StoreEngine } from './store-engine.ts';
import type { Database } from './tables.ts';

/** A submission that was given its identifier. */
export interface NewJob extends Submission {
  readonly jobId: string;
  readonly queuedAt: Date;
}

/** Records a job and its inputs. When this is committed, the job may be acknowledged. */
export async function submitJob(db: Database, engine: StoreEngine, job: NewJob): Promise<void> {
  const { jobId, operation, request } = job;
  await db
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
    })
    .execute();
  await db
    .insertInto('job_requests')
    .values({ job_id: jobId, operation, output: jsonOf(request.output), params: jsonOf(request.params) })
    .execute();
  await engine.insertInputs(db, jobId, JSON.stringify(request.inputs));
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value ?? null);
}
