import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Config } from '#config/config.ts';
import { jobResponse, jobResultResponse } from '#contract/job.ts';
import { AppError } from '#errors/app-error.ts';
import type { AdmissionContext, OperationRequest } from '#operations/admission-context.ts';
import type { Operation } from '#operations/registry.ts';
import { errorResponses } from './error-responses.ts';
import type { JobService } from './job-service.ts';
import { ok } from './ok-response.ts';

/** What the submissions of every operation need. */
export interface Submissions {
  readonly jobs: JobService;
  readonly config: Config;
  readonly checkAssertions: AdmissionContext['checkAssertions'];
  /** Aborted when the service stops; it ends every wait. */
  readonly closing: AbortSignal;
}

/** Adds the asynchronous and the synchronous form of an operation. */
export function addOperationRoutes(app: FastifyInstance, operation: Operation, submissions: Submissions): void {
  addAsyncRoute(app, operation, submissions);
  addSyncRoute(app, operation, submissions);
}

function addAsyncRoute(app: FastifyInstance, operation: Operation, submissions: Submissions): void {
  const { jobs, config, checkAssertions } = submissions;
  app.route({
    method: 'POST',
    url: `/v2${operation.path}`,
    schema: {
      operationId: operation.name,
      summary: operation.summary,
      description: 'Answers at once with a job identifier; poll `GET /v2/jobs/{id}`.',
      tags: ['Operations'],
      body: operation.request,
      response: { 200: ok(jobResponse, 'The job was accepted.'), ...errorResponses(SUBMISSION_ERRORS) },
    },
    handler: async (request, reply) => {
      const body = request.body as OperationRequest;
      await operation.admit(body, { config, checkAssertions, signal: clientGone(reply) });
      const job = await jobs.submit({ operation: operation.name, request: body, sync: false });
      request.log.info({ job_id: job.job_id, operation: operation.name, inputs: body.inputs.length }, 'job accepted');
      return { job_id: job.job_id, status: job.status };
    },
  });
}

function addSyncRoute(app: FastifyInstance, operation: Operation, submissions: Submissions): void {
  const { jobs, config, checkAssertions, closing } = submissions;
  app.route({
    method: 'POST',
    url: `/v2/sync${operation.path}`,
    schema: {
      operationId: `${operation.name}-sync`,
      summary: `${operation.summary} and wait for the result`,
      description:
        'Answers the moment the job ends, also where it failed. After `server.sync_timeout_ms` it answers 408; the job runs on, and the `Location` header says where to look it up.',
      tags: ['Operations'],
      body: operation.request,
      response: { 200: ok(jobResultResponse, 'The job has ended.'), ...errorResponses([...SUBMISSION_ERRORS, 408]) },
    },
    handler: async (request, reply) => {
      const body = request.body as OperationRequest;
      const waitedMs = config.server.sync_timeout_ms;
      const gone = clientGone(reply);
      await operation.admit(body, { config, checkAssertions, signal: gone });
      const { job_id: jobId } = await jobs.submit({ operation: operation.name, request: body, sync: true });
      request.log.info({ job_id: jobId, operation: operation.name, inputs: body.inputs.length }, 'job accepted');
      // From here on the job is there, whatever becomes of this request.
      reply.header('Location', `/v2/jobs/${jobId}`);
      const signal = AbortSignal.any([gone, closing]);
      const ended = await jobs.whenEnded(jobId, waitedMs, signal).catch(unlessAborted(signal));
      if (ended !== null) return ended;
      if (closing.aborted) throw new AppError('SERVICE_STOPPING', { jobId });
      throw new AppError('SYNC_WAIT_ELAPSED', { jobId, waitedMs });
    },
  });
}

const SUBMISSION_ERRORS = [400, 401, 405, 413, 415, 500, 503] as const;

/** Aborted when the connection closes: the client hung up, or it has its answer. */
function clientGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once('close', () => controller.abort(new Error('the connection was closed')));
  return controller.signal;
}

/** A wait that was aborted ends like one that elapsed; every other rejection stays one. */
function unlessAborted(signal: AbortSignal): (error: unknown) => null {
  return (error) => {
    if (signal.aborted) return null;
    throw error;
  };
}
