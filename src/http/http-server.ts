import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type { z } from 'zod';
import { isLoopback, parseBindAddress } from '#config/addresses.ts';
import type { Config } from '#config/config.ts';
import { validate, validateInSlices } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';
import type { JobService } from '#jobs/jobs.ts';
import type { Operation, RequestContext } from '#operations/operation.ts';
import type { Log } from '#telemetry/logger.ts';
import type { Telemetry } from '#telemetry/telemetry.ts';
import { guardHosts, identifyCallers } from './hooks/access.ts';
import {
  answerConnectionError,
  answerErrors,
  answerFrameworkError,
  answerUnknownRoutes,
  COMMON_HEADERS,
  pathOf,
} from './hooks/error-replies.ts';
import { limitBodies, RequestBodyLimit, takeJsonBodies } from './hooks/request-bodies.ts';
import { limitResponseBuffers, ResponseBufferLimit } from './hooks/responses.ts';
import { addDocuments, collectDocument } from './openapi/openapi-document.ts';
import { addConsole } from './routes/console-routes.ts';
import { addEventRoutes } from './routes/event-routes.ts';
import { addInputRoute } from './routes/input-routes.ts';
import { addJobRoutes } from './routes/job-routes.ts';
import { addOutputRoutes } from './routes/output-routes.ts';
import { addRetryRoutes } from './routes/retry-routes.ts';
import { addMetrics, addServiceRoutes, type ServiceRouteParts } from './routes/service-routes.ts';
import { addOperationRoutes } from './routes/submission-routes.ts';

/** A request must have arrived whole within this time; a slow sender holds a connection no longer. */
const RECEIVE_TIMEOUT_MS = 60_000;
/** The interval of the check for slow senders. */
const RECEIVE_CHECK_INTERVAL_MS = 5_000;
/** A connection on which nothing moves is closed after the longest sync wait and this time. */
const IDLE_MARGIN_MS = 30_000;
/** The time a connection is kept open for the client's next request. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
/** The time that open requests get when the server closes. */
const CLOSE_GRACE_MS = 2_000;
/** Longer than any path parameter can be: requests with a larger head are refused by Node. */
const MAX_PARAM_LENGTH = 16_384;

interface HttpServerParts extends Omit<ServiceRouteParts, 'configNow'> {
  readonly config: Config;
  /** Returns the configuration in force, where a reload may replace keys of it. */
  readonly configNow?: () => Config;
  readonly jobs: JobService;
  readonly operations: readonly Operation[];
  /** Tells whether manifests can carry the assertions of a request. */
  readonly checkAssertions: RequestContext['checkAssertions'];
  readonly telemetry: Telemetry;
  readonly logger: FastifyBaseLogger;
  /** The log for what the deployment is at fault for; limits repeats. */
  readonly log: Log;
}

/**
 * Makes the HTTP server, ready to listen. `close()` refuses new requests with 503, ends sync waits (their jobs are
 * kept), lets what is being answered end, and closes every connection within `CLOSE_GRACE_MS`.
 */
export async function createHttpServer(parts: HttpServerParts): Promise<FastifyInstance> {
  const { config, configNow = () => config, jobs, operations, checkAssertions, telemetry, logger } = parts;
  const app = makeApp(config, logger);
  limitConnections(app);
  logRequests(app);
  const tokens = () => configNow().auth.tokens;
  guardHosts(app, config.server.allowed_hosts, () => tokens().length === 0);
  const closing = closeSignal(app);
  await identifyCallers(app, tokens);
  answerUnknownRoutes(app);
  answerErrors(app, parts.log);
  const responseBuffers = new ResponseBufferLimit();
  limitResponseBuffers(app, responseBuffers);
  limitBodies(app, new RequestBodyLimit(config.server.max_upload_bytes));
  takeJsonBodies(app, config.server.max_upload_bytes);
  if (config.server.docs) await collectDocument(app, config);
  addMetrics(app, telemetry.metrics);
  const submissions = { jobs, config, configNow, checkAssertions, telemetry, closing };
  for (const operation of operations) addOperationRoutes(app, operation, submissions);
  addJobRoutes(app, jobs);
  addRetryRoutes(app, submissions);
  const callers = () => tokens().map(({ caller }) => caller);
  addEventRoutes(app, { jobs, closing, responseBuffers, callers });
  addOutputRoutes(app, { jobs, config });
  addInputRoute(app, config);
  addServiceRoutes(app, { ...parts, configNow });
  if (config.server.docs) addDocuments(app);
  await addConsole(app);
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
    // On a busy host plugins take longer than Fastify's bound, which would stop the start.
    pluginTimeout: 0,
    requestTimeout: RECEIVE_TIMEOUT_MS,
    connectionTimeout: config.server.sync_timeout_ms + IDLE_MARGIN_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
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

/** Logs one line for each request: no query, no body, no headers. */
function logRequests(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ ...COMMON_HEADERS, 'X-Request-Id': request.id });
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions, caller, failure } = request;
    const line = {
      method,
      path: pathOf(request.url),
      ...(caller?.name != null && { caller: caller.name }),
      status: reply.statusCode,
      ...(failure !== null && { reason: failure }),
      ms: Math.round(reply.elapsedTime),
    };
    if (routeOptions.logLevel === 'warn') request.log.debug(line, 'request');
    else request.log.info(line, 'request');
  });
}

function warnWhereOpen(config: Config, logger: FastifyBaseLogger): void {
  const address = parseBindAddress(config.server.bind_addr);
  if (config.auth.tokens.length > 0 || address === null || isLoopback(address.host)) return;
  logger.warn(
    { bind_addr: config.server.bind_addr },
    'ANYONE WHO CAN REACH THIS ADDRESS CAN USE THE SERVICE, with all the files it may read. Set auth.tokens, or bind to 127.0.0.1.',
  );
}

/** Connections at once. An idle one takes 10 kB; every event stream and every synchronous wait holds one. */
const MAX_CONNECTIONS = 10_000;

/** The least time between two log lines about refused connections. */
const LOG_INTERVAL_MS = 60_000;

/** Limits the connections of the server: further ones are closed as they arrive. */
function limitConnections(app: FastifyInstance): void {
  let quietUntilMs = 0;
  app.server.maxConnections = MAX_CONNECTIONS;
  app.server.on('drop', () => {
    if (performance.now() < quietUntilMs) return;
    quietUntilMs = performance.now() + LOG_INTERVAL_MS;
    app.log.warn({ connections: app.server.maxConnections }, 'connections are refused: no more are taken at once');
  });
}

/**
 * Validates bodies and queries with the schemas of the contract. Fastify's own validators must answer at once, so they
 * could not yield to the event loop. Parameters and headers are checked by the routes that read them.
 */
function validateRequests(app: FastifyInstance): void {
  app.setValidatorCompiler(() => (value) => ({ value }));
  app.addHook('preValidation', async (request) => {
    const { body, querystring } = (request.routeOptions.schema ?? {}) as Partial<Record<string, z.ZodType>>;
    if (body !== undefined) request.body = await validateInSlices(body, request.body);
    if (querystring !== undefined) request.query = validate(querystring, onceEach(request.query as object));
  });
}

/** Refuses a query that names a parameter twice: no parameter takes several values. */
function onceEach(query: object): object {
  const field = Object.entries(query).find(([, value]) => Array.isArray(value))?.[0];
  if (field === undefined) return query;
  throw new AppError('REQUEST_INVALID', { field, problem: 'is given more than once. Give it once' }, { field });
}
