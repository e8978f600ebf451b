import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Config } from '#config/config.ts';
import { type JobResponse, jobResponse, jobResultResponse } from '#contract/job.ts';
import { AppError } from '#errors/app-error.ts';
import { admitCallback } from '#jobs/callback-sender.ts';
import type { Caller } from '#jobs/caller.ts';
import { scopeOf } from '#jobs/caller.ts';
import type { IdempotencyKey, Submission, SubmittedJob } from '#jobs/job.ts';
import type { JobService } from '#jobs/jobs.ts';
import type { Operation, OperationRequest, RequestContext } from '#operations/operation.ts';
import type { Telemetry } from '#telemetry/telemetry.ts';
import { releaseBody } from '../hooks/request-bodies.ts';
import { goneSignal, whenClosed } from '../hooks/responses.ts';
import { errorResponses, ok } from '../openapi/responses.ts';
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
        200: ok(jobResponse, 'The job was accepted.', JOB_HEADERS),
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
        200: ok(jobResultResponse, 'The job has ended.', JOB_HEADERS),
        ...errorResponses([...SUBMISSION_ERRORS, 408]),
      },
    },
    handler: async (request, reply) => {
      const waitedMs = config.server.sync_timeout_ms;
      const gone = goneSignal(reply);
      const { job_id: jobId } = await acceptRequest(operation, submissions, { request, reply, sync: true, gone });
      // From here on the job is there, whatever becomes of this request.
      releaseBody(request);
      const signal = AbortSignal.any([gone, closing]);
      const ended = await jobs.whenFinished(jobId, waitedMs, signal).catch(unlessAborted(signal));
      if (ended !== null) return sendJob(reply, ended);
      if (closing.aborted) throw new AppError('SERVICE_STOPPING', { jobId });
      const { waiting_for: waiting = [] } = (await jobs.find(jobId, scopeOf(request.caller))) ?? {};
      throw new AppError('SYNC_WAIT_ELAPSED', { jobId, waitedMs, causes: waiting.map(({ message }) => message) });
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

/** The dependencies of every submission. */
export interface Submissions {
  readonly jobs: JobService;
  readonly config: Config;
  /** Returns the configuration in force. */
  readonly configNow: () => Config;
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

/** The parts of a request that its submission needs. */
interface SubmissionContext extends Pick<Submitted, 'sync' | 'gone'> {
  readonly log: FastifyRequest['log'];
  readonly traceParent: string | null;
}

/** A submission that is to become a job. */
interface AskedJob extends Pick<Submission, 'idempotency' | 'caller' | 'identity' | 'retriedFrom' | 'retriedInputs'> {
  readonly operation: Operation;
  readonly request: OperationRequest;
}

/** The headers of an answer that has a job. */
export const JOB_HEADERS = {
  Location: { type: 'string', description: 'The address of the job: `/v2/jobs/{id}`.' },
  'Idempotent-Replayed': {
    type: 'string',
    description: 'Always `true`; only where the `Idempotency-Key` stood for this job already.',
  },
} as const;

export const SUBMISSION_ERRORS = [400, 401, 403, 405, 409, 413, 415, 429, 500, 503] as const;

/** Returns the job of a submission: a new one, or the one that its idempotency key stands for already. */
export async function acceptJob(
  asked: AskedJob,
  submissions: Submissions,
  { request, reply, sync, gone }: Submitted,
): Promise<JobResponse> {
  const traceParent = traceSubmission(request, reply, submissions.telemetry);
  const known = await recallJob(asked.idempotency ?? null, submissions, reply);
  if (known !== null) return known;
  const job = await submitJob(asked, submissions, { log: request.log, sync, gone, traceParent });
  if (job.replayed) return replayed(reply, job);
  locate(reply, job);
  return { job_id: job.job_id, status: job.status };
}

/** Checks a request by the configuration, and submits it. */
export async function submitJob(
  asked: AskedJob,
  { jobs, configNow, checkAssertions, telemetry }: Submissions,
  { log, sync, gone, traceParent }: SubmissionContext,
): Promise<SubmittedJob> {
  const { operation, request: body, caller = null, retriedFrom } = asked;
  const config = configNow();
  if (body.callback_url) admitCallback(body.callback_url, config);
  await operation.validateRequest(body, { config, checkAssertions, signal: gone });
  const job = await jobs.submit({
    ...asked,
    operation: operation.name,
    sync,
    clientReference: body.client_reference,
    labels: body.labels,
    callbackUrl: body.callback_url,
    traceParent,
  });
  if (job.replayed) return job;
  telemetry.metrics.jobSubmitted(operation.name, sync ? 'sync' : 'async', caller);
  const line = { job_id: job.job_id, operation: operation.name, inputs: body.inputs.length };
  log.info(
    { ...line, ...(caller !== null && { caller }), ...(retriedFrom !== undefined && { retried_from: retriedFrom }) },
    'job accepted',
  );
  return job;
}

/**
 * Returns the job that an idempotency key stands for already; null where there is none. To be called first: what was accepted
 * once is not refused later because the queue or a disk is full.
 */
export async function recallJob(
  idempotency: IdempotencyKey | null,
  { jobs }: Pick<Submissions, 'jobs'>,
  reply: FastifyReply,
): Promise<JobResponse | null> {
  const known = idempotency === null ? null : await jobs.recall(idempotency);
  return known === null ? null : replayed(reply, known);
}

function replayed(reply: FastifyReply, { job_id, status }: JobResponse): JobResponse {
  reply.header('Idempotent-Replayed', 'true');
  locate(reply, { job_id });
  return { job_id, status };
}

/** Tells where the job is looked up, also in the error of a sync wait that elapsed. */
function locate(reply: FastifyReply, { job_id }: Pick<JobResponse, 'job_id'>): void {
  reply.header('Location', `/v2/jobs/${job_id}`);
}

/** Starts the span of a request that makes a job; it ends with the answer. Null where nothing is traced. */
export function traceSubmission(request: FastifyRequest, reply: FastifyReply, { tracing }: Telemetry): string | null {
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
export const idempotencyHeaders = z.looseObject({
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
export function idempotencyOf(
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
