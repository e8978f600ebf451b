import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ApiErrorResponse } from '#contract/error.ts';
import { AppError } from '#errors/app-error.ts';
import type { ApiErrorCode } from '#errors/entry.ts';
import { RefusedRequest } from './request-validation.ts';

/** The HTTP status of each code of the error table. */
const STATUS_OF_CODE: Readonly<Record<ApiErrorCode, number>> = {
  VALIDATION_FAILED: 400,
  INVALID_INPUT_TYPE: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN_HOST: 403,
  NOT_FOUND: 404,
  JOB_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  IDEMPOTENCY_CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  PROCESSING_FAILED: 500,
  INTERNAL_ERROR: 500,
  SERVICE_OVERLOADED: 503,
};

/** Headers of every answer: browsers neither guess what it is, nor keep what it says of jobs. */
export const COMMON_HEADERS = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' } as const;

/** After so long a full queue has usually moved, and a service or database that was stopped has been started again. */
const RETRY_AFTER_SECONDS = 5;

/** The HTTP status of an error; one that nobody foresaw is the service's fault. */
export function statusOf(error: AppError | null): number {
  return STATUS_OF_CODE[error?.code ?? 'INTERNAL_ERROR'];
}

/** Answers every error of the app with the error body, and logs what nobody foresaw. */
export function answerErrors(app: FastifyInstance): void {
  app.setErrorHandler((error: Error, request, reply) => sendError(foreseen(error), error, request, reply));
}

/** Answers an error that arose before the app's own handlers, such as a path that cannot be decoded. */
export function answerFrameworkError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  reply.headers(COMMON_HEADERS);
  sendError(new AppError('REQUEST_MALFORMED', { problem: 'has a path that cannot be decoded' }), error, request, reply);
}

function sendError(error: AppError | null, origin: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const code = error?.code ?? 'INTERNAL_ERROR';
  const status = statusOf(error);
  if (request.socket.destroyed) request.log.info('the client hung up before it was answered');
  else if (status === 500) request.log.error({ err: origin, reason: error?.reason }, 'request failed');
  else request.log.info({ reason: error?.reason, ...detailsOf(error) }, 'request refused');

  if (status === 401) reply.header('WWW-Authenticate', 'Bearer');
  // The service is not at fault for good while its disk is full or its database is out of reach.
  const passes = status === 503 || (code === 'INTERNAL_ERROR' && error?.transient);
  if (passes) reply.header('Retry-After', String(RETRY_AFTER_SECONDS));
  // A connection closed on a client that still sends loses it the answer. What it sends is read and thrown away, for as
  // long as a request may take to arrive.
  if (status === 413) reply.removeHeader('connection');
  return reply
    .status(status)
    .type('application/json; charset=utf-8')
    .send(errorBody(error, code, request.id));
}

function errorBody(error: AppError | null, code: ApiErrorCode, requestId: string): ApiErrorResponse {
  if (error === null) {
    const message = `Something went wrong in the service. Its log tells what, under the request id ${requestId}.`;
    return { error: { code, message } };
  }
  const details = detailsOf(error);
  const message = error.isConfidential ? `${error.callerMessage} The request id is ${requestId}.` : error.message;
  return { error: { code, message, ...(Object.keys(details).length > 0 && { details }) } };
}

/** Where an error is, as answers and log lines tell it. */
function detailsOf(error: AppError | null): { field?: string; input_index?: number } {
  const { field, inputIndex } = error?.location ?? {};
  return {
    ...(field !== undefined && { field }),
    ...(inputIndex !== undefined && { input_index: inputIndex }),
  };
}

/** The operational error behind an error, in our words where Fastify raised it; null where there is none. */
function foreseen(error: Error & { code?: string }): AppError | null {
  if (error instanceof AppError) return error;
  if (error instanceof RefusedRequest) return error.refusal;
  return error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? new AppError('BODY_TYPE_UNSUPPORTED', {}) : null;
}
