import type { JobReport } from '#telemetry/input-report.ts';
import type { Database } from './tables.ts';

/** What is measured and traced of a job that has ended; null where it has not. */
export async function reportOfJob(db: Database, jobId: string): Promise<JobReport | null> {
  const job = await db
    .selectFrom('jobs')
    .innerJoin('job_requests', 'job_requests.job_id', 'jobs.job_id')
    .select(['operation', 'caller', 'status', 'inputs_total', 'queued_at', 'finished_at', 'trace_parent'])
    .where('jobs.job_id', '=', jobId)
    .executeTakeFirst();
  if (job === undefined || job.finished_at === null) return null;
  return {
    jobId,
    operation: job.operation,
    caller: job.caller,
    status: job.status === 'succeeded' ? 'succeeded' : 'failed',
    inputs: job.inputs_total,
    queuedAtMs: Date.parse(job.queued_at),
    endedAtMs: Date.parse(job.finished_at),
    traceParent: job.trace_parent,
  };
}
