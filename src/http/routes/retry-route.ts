import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type JobResponse, jobResponse } from '#contract/job.ts';
import { type RetryRequest, retryRequest as retryBody } from '#contract/request.ts';
import { validateInSlices } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';
import { scopeOf } from '#jobs/caller.ts';
import type { Jobs } from '#jobs/jobs.ts';
import { retryRequest } from '#jobs/retry-request.ts';
import type { OperationRequest } from '#operations/operation.ts';
import { operationNamed } from '#operations/registry.ts';
import { errorResponses, ok } from '../openapi/responses.ts';
import {
  acceptJob,
  clientGone,
  idempotencyHeaders,
  idempotencyOf,
  LOCATION_HEADER,
  REPLAYED_HEADER,
  recallJob,
  SUBMISSION_ERRORS,
  type Submissions,
} from './accept-job.ts';
import { type JobRoute, jobParams, knownJobId } from './job-routes.ts';

type RetrySubmissions = Omit<Submissions, 'jobs'> & { readonly jobs: Submissions['jobs'] & Pick<Jobs, 'findRetried'> };

/** Adds the route that runs the failed inputs of a job again. */
export function addRetryRoute(app: FastifyInstance, submissions: RetrySubmissions): void {
  app.route<JobRoute>({
    method: 'POST',
    url: '/v2/jobs/:id/retry',
    schema: {
      operationId: 'retry-job',
      summary: 'Retry the failed inputs of a job',
      description:
        'Submits the inputs that failed, and no others, as a new job of the same caller: with the same `output`, `params`, `client_reference` and `labels`, and with `retried_from`. Inputs are counted anew, also in `params`. It is checked as any submission is. Cancelled inputs are left out. Outputs and sources of the other inputs are left alone, as within one job; what else is at a destination is replaced. `callback_url` is not taken over, because its secrets are erased.',
      tags: ['Jobs'],
      params: jobParams,
      headers: idempotencyHeaders,
      body: retryBody,
      response: {
        202: ok(jobResponse, 'The new job was accepted.', { ...LOCATION_HEADER, ...REPLAYED_HEADER }),
        ...errorResponses([...SUBMISSION_ERRORS, 404]),
      },
    },
    onRequest: async ({ headers }) => takeEmptyBody(headers),
    handler: async (request, reply) => {
      const job = await retryJob(request, reply, submissions);
      return reply.status(202).header('Location', `/v2/jobs/${job.job_id}`).send(job);
    },
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
  submissions: RetrySubmissions,
): Promise<JobResponse> {
  const id = knownJobId(request.params.id);
  const body = request.body as RetryRequest;
  const idempotency = idempotencyOf(request.headers, `retry ${id}`, body, request.caller);
  const known = await recallJob(idempotency, submissions, reply);
  if (known !== null) return known;
  const job = await submissions.jobs.findRetried(id, scopeOf(request.caller));
  if (job === null) throw new AppError('JOB_UNKNOWN', { jobId: id });
  const operation = operationNamed(job.operation);
  const asked = await validateInSlices(operation.request, { ...retryRequest(id, job), ...body });
  return acceptJob(
    { operation, request: asked as OperationRequest, idempotency, caller: job.caller, retriedFrom: id },
    submissions,
    { request, reply, sync: false, gone: clientGone(reply) },
  );
}
