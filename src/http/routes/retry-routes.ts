import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type JobResponse, jobResponse } from '#contract/job.ts';
import {
  MAX_RETRY_JOBS,
  type RetryJobsRequest,
  type RetryJobsResponse,
  type RetryRequest,
  retryRequest as retryBody,
  retryJobsRequest,
  retryJobsResponse,
} from '#contract/retry-request.ts';
import { validateInSlices } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';
import { scopeOf } from '#jobs/caller.ts';
import { firstJobIdAt } from '#jobs/job-ids.ts';
import type { JobService } from '#jobs/jobs.ts';
import { chosenInputs, openInputs, retryRequest } from '#jobs/retry-request.ts';
import type { OperationRequest } from '#operations/operation.ts';
import { operationNamed } from '#operations/registry.ts';
import { goneSignal } from '../hooks/responses.ts';
import { errorResponses, ok } from '../openapi/responses.ts';
import { type JobRoute, jobParams, knownJobId } from './job-routes.ts';
import {
  acceptJob,
  idempotencyHeaders,
  idempotencyOf,
  JOB_HEADERS,
  recallJob,
  SUBMISSION_ERRORS,
  type Submissions,
  submitJob,
  traceSubmission,
} from './submission-routes.ts';

/** Adds the routes that run failed inputs again: those of a job, and those of many. */
export function addRetryRoutes(app: FastifyInstance, submissions: Submissions): void {
  addJobRetry(app, submissions);
  addJobsRetry(app, submissions);
}

function addJobRetry(app: FastifyInstance, submissions: Submissions): void {
  app.route<JobRoute>({
    method: 'POST',
    url: '/v2/jobs/:id/retry',
    schema: {
      operationId: 'retry-job',
      summary: 'Retry the failed inputs of a job',
      description:
        'Submits the inputs that failed, and no others, as a new job of the same caller: with the same `output`, `params`, `client_reference` and `labels`, and with `retried_from`. The body chooses among them, and may ask for cancelled ones. Inputs are counted anew, also in `params`. It is checked as any submission is. Outputs and sources of the other inputs are left alone, as within one job; what else is at a destination is replaced. `callback_url` is not taken over, because its secrets are erased.',
      tags: ['Jobs'],
      params: jobParams,
      headers: idempotencyHeaders,
      body: retryBody,
      response: {
        202: ok(jobResponse, 'The new job was accepted.', JOB_HEADERS),
        ...errorResponses([...SUBMISSION_ERRORS, 404]),
      },
    },
    onRequest: async ({ headers }) => takeEmptyBody(headers),
    handler: async (request, reply) => reply.status(202).send(await retryJob(request, reply, submissions)),
  });
}

/** Clients that set a content type with every request may send no body with it. Without a type, Fastify parses none. */
function takeEmptyBody(headers: FastifyRequest['headers']): void {
  const isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  if (isEmpty) delete headers['content-type'];
}

async function retryJob(
  request: FastifyRequest<JobRoute>,
  reply: FastifyReply,
  submissions: Submissions,
): Promise<JobResponse> {
  const id = knownJobId(request.params.id);
  const body = request.body as RetryRequest;
  const idempotency = idempotencyOf(request.headers, `retry ${id}`, body, request.caller);
  const known = await recallJob(idempotency, submissions, reply);
  if (known !== null) return known;
  const job = await submissions.jobs.record.findRetriedJob(id, scopeOf(request.caller));
  if (job === null) throw new AppError('JOB_UNKNOWN', { jobId: id });
  const operation = operationNamed(job.operation);
  const { reasons, input_indexes: inputIndexes, statuses, ...others } = body;
  const inputs = chosenInputs(id, job, { reasons, inputIndexes, statuses });
  const asked = await validateInSlices(operation.request, { ...retryRequest(job, inputs), ...others });
  return acceptJob(
    {
      operation,
      request: asked as OperationRequest,
      idempotency,
      caller: job.caller,
      identity: job.identity,
      retriedFrom: id,
      retriedInputs: { inputIndexes: inputs.map(({ inputIndex }) => inputIndex), isOnce: false },
    },
    submissions,
    { request, reply, sync: false, gone: goneSignal(reply) },
  );
}

function addJobsRetry(app: FastifyInstance, submissions: Submissions): void {
  app.route<{ Body: RetryJobsRequest }>({
    method: 'POST',
    url: '/v2/jobs/retry',
    schema: {
      operationId: 'retry-jobs',
      summary: 'Retry the failed inputs of many jobs',
      description: `Makes a new job for each job of the caller that failed, or of all callers for an admin, as \`POST /v2/jobs/{id}/retry\` does: under its own caller, with its failed inputs that match. Inputs that a retry has already are left out, so that the request can be repeated; so are those whose query was erased. A request makes ${MAX_RETRY_JOBS} jobs at most, and fewer where the queue is full: \`more\` says so.`,
      tags: ['Jobs'],
      body: retryJobsRequest,
      response: {
        202: ok(retryJobsResponse, 'The new jobs were accepted; there may be none.'),
        ...errorResponses([400, 401, 403, 405, 413, 415, 500, 503]),
      },
    },
    onRequest: async ({ headers }) => takeEmptyBody(headers),
    handler: async (request, reply) => reply.status(202).send(await retryJobs(request, reply, submissions)),
  });
}

async function retryJobs(
  request: FastifyRequest<{ Body: RetryJobsRequest }>,
  reply: FastifyReply,
  submissions: Submissions,
): Promise<RetryJobsResponse> {
  const { since, until, ...choice } = request.body;
  // The jobs that are made here may fail before this is done.
  const before = firstJobIdAt(new Date());
  const filter = { ...choice, before, since: storedTime(since), until: storedTime(until), ...scopeOf(request.caller) };
  const context = {
    log: request.log,
    sync: false,
    gone: goneSignal(reply),
    traceParent: traceSubmission(request, reply, submissions.telemetry),
  };
  const made: string[] = [];
  let leftOut = await submissions.jobs.record.countLeftOut(filter);
  for await (const jobId of failedJobs(filter, submissions.jobs.record)) {
    if (made.length >= MAX_RETRY_JOBS) return { jobs: made, left_out: leftOut, more: true };
    try {
      const retry = await retryOnce(jobId, choice, submissions, context);
      made.push(...retry.jobs);
      leftOut += retry.leftOut;
    } catch (error) {
      // The caller gets the jobs that were made, also where the queue or its part of it is full, or a dependency is away.
      if (!(error instanceof AppError && error.isTransient) || made.length === 0) throw error;
      return { jobs: made, left_out: leftOut, more: true };
    }
  }
  return { jobs: made, left_out: leftOut, more: false };
}

/** Returns a time as the store has it. */
function storedTime(time: string | undefined): string | undefined {
  return time === undefined ? undefined : new Date(time).toISOString();
}

/** Yields the jobs with inputs that a retry may take, a page at a time. */
async function* failedJobs(
  filter: Parameters<JobService['record']['findFailedJobs']>[0],
  record: JobService['record'],
): AsyncGenerator<string, void, void> {
  let last: string | undefined;
  do {
    const page = await record.findFailedJobs(filter, JOBS_PER_PAGE, last);
    yield* page;
    last = page.at(-1);
  } while (last !== undefined);
}

/** One page tells whether there are more jobs than a request takes. */
const JOBS_PER_PAGE = MAX_RETRY_JOBS + 1;

/** Makes a job of the failed inputs of another that no retry has; none where it is refused, or another request makes it. */
async function retryOnce(
  jobId: string,
  choice: Pick<RetryJobsRequest, 'reasons'>,
  submissions: Submissions,
  context: Parameters<typeof submitJob>[2],
): Promise<{ readonly jobs: readonly string[]; readonly leftOut: number }> {
  const job = await submissions.jobs.record.findRetriedJob(jobId);
  const inputs = job === null ? [] : openInputs(job, choice);
  // The job was deleted or retried since.
  if (job === null || inputs.length === 0) return { jobs: [], leftOut: 0 };
  const retriedInputs = { inputIndexes: inputs.map(({ inputIndex }) => inputIndex), isOnce: true };
  const { caller, identity } = job;
  const asked = { idempotency: null, caller, identity, retriedFrom: jobId, retriedInputs };
  try {
    const operation = operationNamed(job.operation);
    const request = (await validateInSlices(operation.request, retryRequest(job, inputs))) as OperationRequest;
    const { job_id: retry, replayed } = await submitJob({ ...asked, operation, request }, submissions, context);
    return replayed ? { jobs: [], leftOut: inputs.length } : { jobs: [retry], leftOut: 0 };
  } catch (error) {
    if (!(error instanceof AppError) || !isRefusal(error)) throw error;
    context.log.info({ job_id: jobId, reason: error.reason }, 'job not retried');
    return { jobs: [], leftOut: inputs.length };
  }
}

/** Returns true where the configuration as it is now refuses a request, or this release does not know its operation. */
function isRefusal({ code, reason }: AppError): boolean {
  return ['VALIDATION_FAILED', 'INVALID_INPUT_TYPE', 'FORBIDDEN'].includes(code) || reason === 'OPERATION_UNKNOWN';
}
