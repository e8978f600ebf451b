import type { FastifyInstance } from 'fastify';
import { type JobResponse, jobResponse, jobResultResponse } from '#contract/job.ts';
import { AppError } from '#errors/app-error.ts';
import type { Operation, OperationRequest } from '#operations/operation.ts';
import { releaseBody } from '../hooks/body-limits.ts';
import { errorResponses, ok } from '../openapi/responses.ts';
import {
  acceptJob,
  clientGone,
  idempotencyHeaders,
  idempotencyOf,
  LOCATION_HEADER,
  REPLAYED_HEADER,
  SUBMISSION_ERRORS,
  type Submissions,
  type Submitted,
} from './accept-job.ts';
import { sendJob } from './job-routes.ts';

/** Adds the asynchronous and the synchronous form of an operation. */
export function addOperationRoutes(app: FastifyInstance, operation: Operation, submissions: Submissions): void {
  addAsyncRoute(app, operation, submissions);
  addSyncRoute(app, operation, submissions);
}

function addAsyncRoute(app: FastifyInstance, operation: Operation, submissions: Submissions): void {
  app.route({
    method: 'POST',
    url: `/v2${operation.path}`,
    schema: {
      operationId: operation.name,
      summary: operation.summary,
      description: 'Answers at once with a job identifier; poll `GET /v2/jobs/{id}`.',
      tags: ['Operations'],
      headers: idempotencyHeaders,
      body: operation.request,
      response: {
        200: ok(jobResponse, 'The job was accepted.', REPLAYED_HEADER),
        ...errorResponses(SUBMISSION_ERRORS),
      },
    },
    handler: (request, reply) =>
      acceptRequest(operation, submissions, { request, reply, sync: false, gone: clientGone(reply) }),
  });
}

function addSyncRoute(app: FastifyInstance, operation: Operation, submissions: Submissions): void {
  const { jobs, config, closing } = submissions;
  app.route({
    method: 'POST',
    url: `/v2/sync${operation.path}`,
    schema: {
      operationId: `${operation.name}-sync`,
      summary: `${operation.summary} and wait for the result`,
      description:
        'Answers the moment the job ends, also where it failed. After `server.sync_timeout_ms` it answers 408; the job runs on, and the `Location` header says where to look it up.',
      tags: ['Operations'],
      headers: idempotencyHeaders,
      body: operation.request,
      response: {
        200: ok(jobResultResponse, 'The job has ended.', { ...LOCATION_HEADER, ...REPLAYED_HEADER }),
        ...errorResponses([...SUBMISSION_ERRORS, 408]),
      },
    },
    handler: async (request, reply) => {
      const waitedMs = config.server.sync_timeout_ms;
      const gone = clientGone(reply);
      const { job_id: jobId } = await acceptRequest(operation, submissions, { request, reply, sync: true, gone });
      // From here on the job is there, whatever becomes of this request.
      releaseBody(request);
      reply.header('Location', `/v2/jobs/${jobId}`);
      const signal = AbortSignal.any([gone, closing]);
      const ended = await jobs.whenEnded(jobId, waitedMs, signal).catch(unlessAborted(signal));
      if (ended !== null) return sendJob(reply, ended);
      if (closing.aborted) throw new AppError('SERVICE_STOPPING', { jobId });
      throw new AppError('SYNC_WAIT_ELAPSED', { jobId, waitedMs });
    },
  });
}

/** Accepts the body of a request as it is, in the name of who sent it. */
async function acceptRequest(
  operation: Operation,
  submissions: Submissions,
  submitted: Submitted,
): Promise<JobResponse> {
  const { body, headers, caller } = submitted.request;
  const request = body as OperationRequest;
  const idempotency = idempotencyOf(headers, operation.name, request, caller);
  return acceptJob({ operation, request, idempotency, caller: caller.name }, submissions, submitted);
}

/** A wait that was aborted ends like one that elapsed; every other rejection stays one. */
function unlessAborted(signal: AbortSignal): (error: unknown) => null {
  return (error) => {
    if (signal.aborted) return null;
    throw error;
  };
}
