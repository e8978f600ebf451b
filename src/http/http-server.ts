import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { isLoopback, parseBindAddress } from '#config/bind-address.ts';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import type { AdmissionContext } from '#operations/admission-context.ts';
import type { Operation } from '#operations/registry.ts';
import type { Telemetry } from '#telemetry/telemetry.ts';
import { AnswerRoom, boundLargeAnswers } from './answer-room.ts';
import { identifyCallers } from './authentication.ts';
import { answerConnectionError } from './connection-errors.ts';
import { boundConnections } from './connection-room.ts';
import { addDocuments } from './documents.ts';
import { answerErrors, answerFrameworkError, COMMON_HEADERS } from './error-replies.ts';
import { addEventRoute } from './event-routes.ts';
import { guardHosts } from './host-guard.ts';
import { addJobRoutes } from './job-routes.ts';
import type { JobService } from './job-service.ts';
import { takeJsonBodies } from './json-body.ts';
import { addMetrics } from './metrics-route.ts';
import { collectDocument } from './openapi-document.ts';
import { addOperationRoutes } from './operation-routes.ts';
import { limitBodies, RequestBodyLimit } from './request-body-limit.ts';
import { validateRequests } from './request-validation.ts';
import { answerUnknownRoutes, pathOf } from './route-table.ts';
import { addHealthRoute, addReadinessRoute, addWatermarkRoutes } from './service-routes.ts';

/** A request must have arrived whole within this time; a slow sender holds a connection no longer. */
const RECEIVE_TIMEOUT_MS = 60_000;
/** Slow senders are looked for so often. */
const RECEIVE_CHECK_INTERVAL_MS = 5_000;
/** A connection on which nothing moves is closed after the longest sync wait and this time. */
const IDLE_MARGIN_MS = 30_000;
/** How long a connection is kept for the client's next request. */
const KEEP_ALIVE_MS = 72_000;
/** How long requests that are being answered may take when the server closes. */
const CLOSE_GRACE_MS = 2_000;
/** Longer than any path parameter can be: requests with a larger head are refused by Node. */
const MAX_PARAM_LENGTH = 16_384;

export interface HttpServerParts {
  readonly config: Config;
  readonly jobs: JobService;
  readonly operations: readonly Operation[];
  /** Tells whether manifests can carry the assertions of a request. */
  readonly checkAssertions: AdmissionContext['checkAssertions'];
  readonly telemetry: Telemetry;
  readonly logger: FastifyBaseLogger;
}

/**
 * Makes the HTTP server, ready to listen. `close()` refuses new requests with 503, ends sync waits (their jobs are
 * kept), lets what is being answered end, and closes every connection within `CLOSE_GRACE_MS`.
 */
export async function createHttpServer(parts: HttpServerParts): Promise<FastifyInstance> {
  const { config, jobs, operations, checkAssertions, telemetry, logger } = parts;
  const app = makeApp(config, logger);
  boundConnections(app);
  logRequests(app);
  if (config.auth.tokens.length === 0) guardHosts(app, config.server.allowed_hosts);
  const closing = closeSignal(app);
  identifyCallers(app, config.auth.tokens);
  answerUnknownRoutes(app);
  answerErrors(app);
  const answerRoom = new AnswerRoom();
  boundLargeAnswers(app, answerRoom);
  limitBodies(app, new RequestBodyLimit(config.server.max_upload_bytes));
  takeJsonBodies(app, config.server.max_upload_bytes);
  if (config.server.docs) await collectDocument(app, config);
  addMetrics(app, telemetry.metrics);
  for (const operation of operations) {
    addOperationRoutes(app, operation, { jobs, config, checkAssertions, telemetry, closing });
  }
  addJobRoutes(app, jobs);
  addEventRoute(app, { jobs, closing, answerRoom });
  addHealthRoute(app, jobs);
  addReadinessRoute(app, jobs);
  addWatermarkRoutes(app);
  if (config.server.docs) addDocuments(app);
  warnWhereOpen(config, logger);
  await app.ready();
  return app;
}

function makeApp(config: Config, logger: FastifyBaseLogger): FastifyInstance {
  const app = Fastify({
    loggerInstance: logger,
    // Without a host Node would answer by itself, and without the error body.
    http: { requireHostHeader: false, connectionsCheckingInterval: RECEIVE_CHECK_INTERVAL_MS },
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: () => randomUUID(),
    requestTimeout: RECEIVE_TIMEOUT_MS,
    connectionTimeout: config.server.sync_timeout_ms + IDLE_MARGIN_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    clientErrorHandler: answerConnectionError,
    frameworkErrors: answerFrameworkError,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
  });
  // Without a listener Node would answer 417 by itself, and without the error body.
  app.server.on('checkExpectation', (request, response) => void app.server.emit('request', request, response));
  validateRequests(app);
  // Replies are built from typed values; checking them again would cost a batch of 10,000 results dearly.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  return app;
}

/** Refuses requests once the server closes, and returns the signal that ends what is still waiting then. */
function closeSignal(app: FastifyInstance): AbortSignal {
  const closing = new AbortController();
  app.addHook('preClose', async () => {
    closing.abort(new Error('the service is stopping'));
    // Waits have just ended, so what is still open belongs to a client that sends or reads too slowly.
    setTimeout(() => app.server.closeAllConnections(), CLOSE_GRACE_MS).unref();
  });
  app.addHook('onRequest', async () => {
    if (closing.signal.aborted) throw new AppError('SERVICE_STOPPING', {});
  });
  // A connection that was busy when the server closed would else be kept open for the client's next request.
  app.addHook('onSend', async (_request, reply) => {
    if (closing.signal.aborted) reply.header('Connection', 'close');
  });
  return closing.signal;
}

/** One line for each request: no query, no body, no headers. */
function logRequests(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ ...COMMON_HEADERS, 'X-Request-Id': request.id });
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions, caller } = request;
    const line = {
      method,
      path: pathOf(request.url),
      ...(caller?.name != null && { caller: caller.name }),
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
    };
    if (routeOptions.logLevel === 'warn') request.log.debug(line, 'request');
    else request.log.info(line, 'request');
  });
}

function warnWhereOpen(config: Config, logger: FastifyBaseLogger): void {
  const address = parseBindAddress(config.server.bind_addr);
  if (config.auth.tokens.length > 0 || address === null || isLoopback(address)) return;
  logger.warn(
    { bind_addr: config.server.bind_addr },
    'ANYONE WHO CAN REACH THIS ADDRESS CAN USE THE SERVICE, with all the files it may read. Set auth.tokens, or bind to 127.0.0.1.',
  );
}
