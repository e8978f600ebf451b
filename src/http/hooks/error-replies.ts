import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ApiErrorResponse } from '#contract/error.ts';
import { AppError } from '#errors/app-error.ts';
import type { ApiErrorCode } from '#errors/entry.ts';
import type { Log } from '#telemetry/logger.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The reason for which the deployment is at fault that the request fails; null where it is not. */
    failure: string | null;
  }
}

/** The HTTP status of each code of the error table. */
const STATUS_OF_CODE: Readonly<Record<ApiErrorCode, number>> = {
  VALIDATION_FAILED: 400,
  INVALID_INPUT_TYPE: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  FORBIDDEN_HOST: 403,
  NOT_FOUND: 404,
  JOB_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  IDEMPOTENCY_CONFLICT: 409,
  JOB_NOT_RETRYABLE: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RANGE_NOT_SATISFIABLE: 416,
  CALLER_LIMIT: 429,
  PROCESSING_FAILED: 500,
  INTERNAL_ERROR: 500,
  SERVICE_OVERLOADED: 503,
  SERVICE_UNAVAILABLE: 503,
};

/** Headers of every answer: browsers neither guess what it is, nor keep what it says of jobs. */
export const COMMON_HEADERS = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' } as const;

/** Within this time a full queue has usually moved, and a stopped service or database has usually been restarted. */
const RETRY_AFTER_SECONDS = 5;

/** Answers every error of the app with the error body, and logs what nobody foresaw. */
export function answerErrors(app: FastifyInstance, log: Log): void {
  app.decorateRequest('failure', null);
  app.setErrorHandler((error: Error, request, reply) => {
    const known = foreseen(error, request);
    logError(known, error, request, log);
    return sendError(known, request, reply);
  });
}

/** Answers an error that arose before the app's own handlers, such as a path that cannot be decoded. */
export function answerFrameworkError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  reply.headers(COMMON_HEADERS);
  const malformed = new AppError('REQUEST_MALFORMED', { problem: 'has a path that cannot be decoded' });
  logError(malformed, error, request, request.log);
  sendError(malformed, request, reply);
}

/** Logs errors that the deployment is at fault for to `log`, which limits them. */
function logError(error: AppError, origin: Error, request: FastifyRequest, log: Log): void {
  const { code, reason } = error;
  const isOurs = STATUS_OF_CODE[code] === 500 || error.isOperational;
  if (isOurs) request.failure = reason;
  if (request.socket.destroyed) request.log.info('the client hung up before it was answered');
  else if (isOurs) log.error({ request_id: request.id, err: origin, reason }, 'request failed');
  else request.log.info({ reason, ...locationOf(error) }, 'request refused');
}

function sendError(error: AppError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { code } = error;
  const status = STATUS_OF_CODE[code];

  if (status === 401) reply.header('WWW-Authenticate', 'Bearer');
  // The service is not at fault for good while its disk is full or its database is out of reach.
  const passes = status === 429 || status === 503 || (code === 'INTERNAL_ERROR' && error.isTransient);
  if (passes) reply.header('Retry-After', String(RETRY_AFTER_SECONDS));
  // A connection closed on a client that still sends loses it the answer. Its bytes are read and thrown away, for as
  // long as a request may take to arrive.
  if (status === 413) reply.removeHeader('connection');
  return reply.status(status).type('application/json; charset=utf-8').send(errorBody(error, request.id));
}

function errorBody(error: AppError, requestId: string): ApiErrorResponse {
  const message = error.isConfidential ? `${error.callerMessage} The request id is ${requestId}.` : error.message;
  return { error: { code: error.code, message, details: detailsOf(error) } };
}

function detailsOf(error: AppError): ApiErrorResponse['error']['details'] {
  const problems = [error, ...error.others].map((problem) => ({
    message: problem.message,
    reason: problem.reason,
    ...placeOf(problem),
  }));
  return {
    ...shownDetails(error),
    ...locationOf(error),
    reason: error.reason,
    ...(STATUS_OF_CODE[error.code] === 400 && { problems }),
  };
}

/** Returns the details that callers see as fields of their own. */
function shownDetails({ details }: AppError): Pick<ApiErrorResponse['error']['details'], 'identities' | 'cause'> {
  const { identities, cause } = details as Pick<ApiErrorResponse['error']['details'], 'identities' | 'cause'>;
  return { ...(identities !== undefined && { identities }), ...(cause !== undefined && { cause }) };
}

/** Returns the location of an error as responses and log lines state it. */
function locationOf(error: AppError) {
  const { inputIndexes } = error.location;
  return { ...placeOf(error), ...(inputIndexes !== undefined && { input_indexes: inputIndexes }) };
}

function placeOf({ location: { field, inputIndex } }: AppError) {
  return { ...(field !== undefined && { field }), ...(inputIndex !== undefined && { input_index: inputIndex }) };
}

/** Returns the operational error behind an error, in our words where Fastify raised it; any other is a bug. */
function foreseen(error: Error & { code?: string }, { id: requestId }: FastifyRequest): AppError {
  if (error instanceof AppError) return error;
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new AppError('BODY_TYPE_UNSUPPORTED', {});
  return new AppError('REQUEST_MET_BUG', { requestId });
}

/** Answers what Node could not read as a request, and closes the connection: nothing sensible can follow on it. */
export function answerConnectionError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const refusal = refusalOf(error.code);
  const { code, message } = refusal;
  const answer: ApiErrorResponse = { error: { code, message, details: detailsOf(refusal) } };
  const body = JSON.stringify(answer);
  const status = STATUS_OF_CODE[code];
  const head = [
    `HTTP/1.1 ${status} ${status === 408 ? 'Request Timeout' : 'Bad Request'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...Object.entries(COMMON_HEADERS).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

function refusalOf(code: string | undefined): AppError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AppError('REQUEST_TOO_SLOW', {});
    case 'HPE_HEADER_OVERFLOW':
      return new AppError('REQUEST_MALFORMED', { problem: 'has a longer path or more headers than are taken' });
    default:
      return new AppError('REQUEST_MALFORMED', { problem: 'is not HTTP/1.1 as it should be' });
  }
}

/** The longest path that is repeated in a message or a log, in characters. */
const MAX_PATH_SHOWN = 200;

/** The path of the OpenAPI document, unless `server.docs` is off. */
const DOCUMENT_PATH = '/openapi.json';

/** Returns a request's path without its query, which may hold a secret. */
export function pathOf(url: string): string {
  return (url.split('?', 1)[0] ?? '').slice(0, MAX_PATH_SHOWN);
}

/**
 * Answers paths that no route has with 404, and methods that a path does not take with 405 and an `Allow` header.
 * It answers before a body is read. Call it before the routes are added.
 */
export function answerUnknownRoutes(app: FastifyInstance): void {
  const methodsByPattern = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByPattern.get(url) ?? new Set();
    methodsByPattern.set(url, new Set([...methods, ...[method].flat()]));
  });
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return;
    const { method } = request;
    const path = pathOf(request.url);
    const allowed = [...methodsByPattern]
      .filter(([pattern]) => matches(pattern, path))
      .flatMap(([, methods]) => [...methods]);
    if (allowed.length === 0) throw unknownRoute(request);
    reply.header('Allow', allowed.join(', '));
    throw new AppError('METHOD_UNKNOWN', { method, path, allowed });
  });
}

/** Returns the error for a path that nothing is at. It names the OpenAPI document where there is one. */
export function unknownRoute({ method, url, server }: FastifyRequest): AppError {
  const documented = server.hasRoute({ method: 'GET', url: DOCUMENT_PATH });
  return new AppError('ROUTE_UNKNOWN', { method, path: pathOf(url), documented });
}

/** Returns true where a path matches a pattern such as `/v2/jobs/:id`. */
function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const given = path.split('/');
  // A "*" stands for one or more parts.
  if (wanted.at(-1) === '*' && given.length > wanted.length) given.length = wanted.length;
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => part === '*' || (part.startsWith(':') ? given[index] !== '' : part === given[index]))
  );
}
