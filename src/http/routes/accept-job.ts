import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Config } from '#config/config.ts';
import type { JobResponse } from '#contract/job.ts';
import { AppError } from '#errors/app-error.ts';
import { admitCallback } from '#jobs/callback-sender.ts';
import type { Caller } from '#jobs/caller.ts';
import type { IdempotencyKey } from '#jobs/job.ts';
import type { Jobs } from '#jobs/jobs.ts';
import type { Operation, OperationRequest, RequestContext } from '#operations/operation.ts';
import type { Telemetry } from '#telemetry/telemetry.ts';

/** The dependencies of every submission. */
export interface Submissions {
  readonly jobs: Pick<Jobs, 'submit' | 'recall' | 'whenEnded'>;
  readonly config: Config;
  readonly checkAssertions: RequestContext['checkAssertions'];
  readonly telemetry: Telemetry;
  /** Aborted when the service stops; it ends every wait. */
  readonly closing: AbortSignal;
}

/** A submission on its way to becoming a job. */
export interface Submitted {
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

export const REPLAYED_HEADER = {
  'Idempotent-Replayed': {
    type: 'string',
    description: 'Always `true`; only where the `Idempotency-Key` stood for this job already.',
  },
} as const;

export const LOCATION_HEADER = {
  Location: { type: 'string', description: 'The address of the job: `/v2/jobs/{id}`.' },
} as const;

export const SUBMISSION_ERRORS = [400, 401, 403, 405, 409, 413, 415, 500, 503] as const;

/** Returns the job of a submission: a new one, or the one that its idempotency key stands for already. */
export async function acceptJob(asked: AskedJob, submissions: Submissions, submitted: Submitted): Promise<JobResponse> {
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
  return { job_id, status };
}

/** Starts the span of a request that makes a job; it ends with the answer. Null where nothing is traced. */
function traceSubmission(request: FastifyRequest, reply: FastifyReply, { tracing }: Telemetry): string | null {
  if (tracing === null) return null;
  const { method, headers, routeOptions } = request;
  const traceParent = [headers['traceparent']].flat()[0];
  const span = tracing.startRequest({ method, route: routeOptions.url ?? '', traceParent });
  reply.raw.once('close', () => span.end(reply.statusCode));
  return span.traceParent;
}

/** Aborted when the connection closes: the client hung up, or it has its answer. */
export function clientGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once('close', () => controller.abort(new Error('the connection was closed')));
  return controller.signal;
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
 * Returns the idempotency key of a submission with a digest of what was asked for: an operation or a retry, and the body; null
 * where it has none. The synchronous and the asynchronous form of an operation ask for the same. Every caller has keys of its own.
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
