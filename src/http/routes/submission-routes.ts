import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Config } from '#config/config.ts';
import { type JobResponse, jobResponse, jobResultResponse } from '#contract/job.ts';
import { type RetryRequest, retryRequest as retryBody } from '#contract/request.ts';
import { validateInSlices } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';
import { admitCallback } from '#jobs/callback-sender.ts';
import { type Caller, scopeOf } from '#jobs/caller.ts';
import type { IdempotencyKey } from '#jobs/job.ts';
import type { Jobs } from '#jobs/jobs.ts';
import { retryRequest } from '#jobs/retry-request.ts';
import type { Operation, OperationRequest, RequestContext } from '#operations/operation.ts';
import { operationNamed } from '#operations/registry.ts';
import type { Telemetry } from '#telemetry/telemetry.ts';
import { releaseBody } from '../hooks/request-bodies.ts';
import { goneSignal, whenClosed } from '../hooks/responses.ts';
import { errorResponses, ok } from '../openapi/responses.ts';
import { type JobRoute, jobParams, knownJobId, sendJob } from './job-routes.ts';

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
      acceptRequest(operation, submissions, { request, reply, sync: false, gone: goneSignal(reply) }),
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
      const gone = goneSignal(reply);
      const { job_id: jobId } = await acceptRequest(operation, submissions, { request, reply, sync: true, gone });
      // From here on the job is there, whatever becomes of this request.
      releaseBody(request);
      reply.header('Location', `/v2/jobs/${jobId}`);
      const signal = AbortSignal.any([gone, closing]);
      const ended = await jobs.whenFinished(jobId, waitedMs, signal).catch(unlessAborted(signal));
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

/** Ends a wait that was aborted like one that elapsed. Throws every other error again. */
function unlessAborted(signal: AbortSignal): (error: unknown) => null {
  return (error) => {
    if (signal.aborted) return null;
    throw error;
  };
}

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
    { request, reply, sync: false, gone: goneSignal(reply) },
  );
}

/** The dependencies of every submission. */
interface Submissions {
  readonly jobs: Pick<Jobs, 'submit' | 'recall' | 'whenFinished'>;
  readonly config: Config;
  readonly checkAssertions: RequestContext['checkAssertions'];
  readonly telemetry: Telemetry;
  /** Aborted when the service stops; it ends every wait. */
  readonly closing: AbortSignal;
}

/** A submission on its way to becoming a job. */
interface Submitted {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly sync: boolean;
  /** Aborted when the connection closes. */
  readonly gone: AbortSignal;
}

/** A submission that is to become a job. */
interface AskedJob {
  readonly operation: Operation;
  readonly request: OperationRequest;
  readonly idempotency: IdempotencyKey | null;
  /** The name that the job is recorded under. */
  readonly caller: string | null;
  readonly retriedFrom?: string;
}

const REPLAYED_HEADER = {
  'Idempotent-Replayed': {
    type: 'string',
    description: 'Always `true`; only where the `Idempotency-Key` stood for this job already.',
  },
} as const;

const LOCATION_HEADER = {
  Location: { type: 'string', description: 'The address of the job: `/v2/jobs/{id}`.' },
} as const;

const SUBMISSION_ERRORS = [400, 401, 403, 405, 409, 413, 415, 429, 500, 503] as const;

/** Returns the job of a submission: a new one, or the one that its idempotency key stands for already. */
async function acceptJob(asked: AskedJob, submissions: Submissions, submitted: Submitted): Promise<JobResponse> {
  const { operation, request: body, idempotency, caller, retriedFrom } = asked;
  const { jobs, config, checkAssertions, telemetry } = submissions;
  const { request, reply, sync, gone } = submitted;
  const traceParent = traceSubmission(request, reply, telemetry);
  const known = await recallJob(idempotency, submissions, reply);
  if (known !== null) return known;
  if (body.callback_url) admitCallback(body.callback_url, config);
  await operation.validateRequest(body, { config, checkAssertions, signal: gone });
  const job = await jobs.submit({
    operation: operation.name,
    request: body,
    sync,
    clientReference: body.client_reference,
    labels: body.labels,
    retriedFrom,
    callbackUrl: body.callback_url,
    idempotency,
    traceParent,
    caller,
  });
  if (job.replayed) return replayed(reply, job);
  telemetry.metrics.jobSubmitted(operation.name, sync ? 'sync' : 'async', caller);
  const line = { job_id: job.job_id, operation: operation.name, inputs: body.inputs.length };
  request.log.info(
    { ...line, ...(caller !== null && { caller }), ...(retriedFrom !== undefined && { retried_from: retriedFrom }) },
    'job accepted',
  );
  return { job_id: job.job_id, status: job.status };
}

/**
 * Returns the job that an idempotency key stands for already; null where there is none. To be called first: what was accepted
 * once is not refused later because the queue or a disk is full.
 */
async function recallJob(
  idempotency: IdempotencyKey | null,
  { jobs }: Pick<Submissions, 'jobs'>,
  reply: FastifyReply,
): Promise<JobResponse | null> {
  const known = idempotency === null ? null : await jobs.recall(idempotency);
  return known === null ? null : replayed(reply, known);
}

function replayed(reply: FastifyReply, { job_id, status }: JobResponse): JobResponse {
  reply.header('Idempotent-Replayed', 'true');
  return { job_id, status };
}

/** Starts the span of a request that makes a job; it ends with the answer. Null where nothing is traced. */
function traceSubmission(request: FastifyRequest, reply: FastifyReply, { tracing }: Telemetry): string | null {
  if (tracing === null) return null;
  const { method, headers, routeOptions } = request;
  const traceParent = [headers['traceparent']].flat()[0];
  const span = tracing.startRequest({ method, route: routeOptions.url ?? '', traceParent });
  whenClosed(reply.raw, () => span.end(reply.statusCode));
  return span.traceParent;
}

const MAX_KEY_LENGTH = 255;

/** Printable ASCII without the space: a header that was sent twice arrives joined by a comma and a space. */
const KEY = /^[\x21-\x7e]+$/;

/** The documentation of the header; `idempotencyOf` refuses malformed keys. */
const idempotencyHeaders = z.looseObject({
  'idempotency-key': z
    .string()
    .optional()
    .describe(
      `1 to ${MAX_KEY_LENGTH} printable ASCII characters, such as a UUID. The same key with the same request is answered with the same job for as long as the job is kept (\`jobs.retention_hours\`), and with the header \`Idempotent-Replayed: true\`; with another request it is answered 409.`,
    ),
});

/**
 * Returns the idempotency key of a submission with a digest of what was asked for: an operation or a retry, and the
 * body; null where it has none. The synchronous and the asynchronous form of an operation ask for the same. Every
 * caller has keys of its own.
 */
function idempotencyOf(
  headers: IncomingHttpHeaders,
  asked: string,
  body: object,
  caller: Caller,
): IdempotencyKey | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || key.length > MAX_KEY_LENGTH || !KEY.test(key)) {
    throw new AppError('IDEMPOTENCY_KEY_MALFORMED', { limit: MAX_KEY_LENGTH });
  }
  return {
    // A key holds no space, so no two callers can mean the same by theirs.
    key: caller.name === null ? key : `${caller.name} ${key}`,
    digest: createHash('sha256')
      .update(`${asked} ${JSON.stringify(body)}`)
      .digest('hex'),
  };
}
