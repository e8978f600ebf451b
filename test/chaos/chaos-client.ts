import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobResponse, JobResultResponse } from '#contract/job.ts';
import { type ChaosJob, requestOf } from './chaos-jobs.ts';

/** Time in which a service that has other things to do acknowledges a job. */
const ACKNOWLEDGEMENT_MS = 600_000;
const SUBMISSION_PAUSE_MS = 100;

/**
 * Sends a job. Null where nobody answered, or the answer is to come again later, or the job did not end in time: the service may
 * have it or not. Any other answer that is no job is an error, since nothing is wrong with the request.
 */
export async function submitJob(base: string, job: ChaosJob): Promise<string | null> {
  const route = `${base}/v2/${job.isSync ? 'sync/' : ''}${job.operation.route}`;
  const headers = { 'content-type': 'application/json', 'idempotency-key': job.idempotencyKey };
  try {
    const answer = await fetch(route, { method: 'POST', headers, body: JSON.stringify(requestOf(job)) });
    const text = await answer.text();
    if (answer.headers.has('retry-after') || answer.status === 408) return null;
    assert.equal(answer.status, 200, `${route} answered ${answer.status}: ${text}`);
    return (JSON.parse(text) as JobResponse | JobResultResponse).job_id;
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return null;
  }
}

/** Sends a job without waiting for its end, until it is acknowledged. */
export async function submitUntilAcknowledged(base: string, job: ChaosJob): Promise<string> {
  const deadline = Date.now() + ACKNOWLEDGEMENT_MS;
  while (Date.now() < deadline) {
    const jobId = await submitJob(base, { ...job, isSync: false });
    if (jobId !== null) return jobId;
    await sleep(SUBMISSION_PAUSE_MS);
  }
  throw new Error(`${job.idempotencyKey} is never acknowledged`);
}

/** The identifiers of all jobs that the service knows. */
export async function listJobs(base: string): Promise<Set<string>> {
  const jobIds = new Set<string>();
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const answer: Response = await fetch(`${base}/v2/jobs?limit=200${page}`);
    assert.equal(answer.status, 200);
    const body = (await answer.json()) as { jobs: { job_id: string }[]; next_cursor?: string | null };
    for (const { job_id: jobId } of body.jobs) jobIds.add(jobId);
    cursor = body.next_cursor ?? null;
  }
  return jobIds;
}

/** Returns true where a job waits or runs, as far as is known: a node that does not answer is being killed. */
export async function hasUnendedJobs(base: string): Promise<boolean> {
  for (const status of ['queued', 'running']) {
    const answer = await fetch(`${base}/v2/jobs?status=${status}&limit=1`).catch(() => null);
    const body = (await answer?.json().catch(() => null)) as { jobs?: unknown[] } | null | undefined;
    if (!body?.jobs || body.jobs.length > 0) return true;
  }
  return false;
}
