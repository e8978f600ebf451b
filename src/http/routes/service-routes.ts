import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type Config, shownConfig } from '#config/config.ts';
import { defaultIdentityOf } from '#config/identities.ts';
import {
  configuration,
  type ReloadResponse,
  readiness,
  reloadResponse,
  type ShownConfig,
  type ShownTrustLists,
  trustLists,
} from '#contract/service.ts';
import { AppError } from '#errors/app-error.ts';
import { type NodeIdentities, shownIdentities, shownIdentity, usableIdentities } from '#jobs/identities.ts';
import type { JobService } from '#jobs/jobs.ts';
import type { TrustSource } from '#provenance/trust-lists.ts';
import type { Metrics } from '#telemetry/metrics.ts';
import { SESSION_COOKIE } from '../hooks/access.ts';
import { errorResponses, ok } from '../openapi/responses.ts';

export interface ServiceRouteParts {
  readonly jobs: JobService;
  /** Returns the configuration in force. */
  readonly configNow: () => Config;
  /** The signing identities of this node; none where it only takes jobs. */
  readonly identities?: NodeIdentities;
  readonly trust: TrustSource;
  readonly reload: Reload;
}

/** Adds the routes about the service itself, apart from its metrics. */
export function addServiceRoutes(app: FastifyInstance, parts: ServiceRouteParts): void {
  const { jobs, configNow, identities = null, trust, reload } = parts;
  addSessionRoute(app, configNow);
  addLoginRoute(app);
  addLogoutRoute(app);
  addHealthRoute(app, jobs);
  addReadinessRoute(app, jobs);
  addConfigurationRoute(app, configNow, identities);
  addReloadRoute(app, reload);
  addTrustListsRoute(app, trust);
  addWatermarkRoutes(app);
}

/** Adds the health probe. */
function addHealthRoute(app: FastifyInstance, jobs: JobService): void {
  app.route({
    method: 'GET',
    url: '/v2/health',
    config: { open: true, anyHost: true },
    logLevel: 'warn',
    schema: {
      operationId: 'health',
      summary: 'Liveness and readiness',
      description: 'Needs no token. A full queue is none of its business: see `/v2/health/ready`.',
      tags: ['Service'],
      security: [],
      response: {
        200: z
          .undefined()
          .describe('The job store can be written: jobs are taken and their results recorded. The body is empty.'),
        503: z
          .undefined()
          .describe('The job store cannot be reached or written, as on a full disk. The body is empty.'),
        ...errorResponses([405]),
      },
    },
    handler: async (_request, reply) => reply.status((await jobs.healthy()) ? 200 : 503).send(),
  });
}

/** Adds the detail beside the health probe. Without the token of an admin it tells nothing that nobody else may know. */
function addReadinessRoute(app: FastifyInstance, jobs: JobService): void {
  app.route({
    method: 'GET',
    url: '/v2/health/ready',
    config: { open: true, anyHost: true },
    logLevel: 'warn',
    schema: {
      operationId: 'readiness',
      summary: 'Readiness in detail',
      description:
        'What this node does and how it is: its store, its queue, its workers, and what is away that inputs wait for. Needs no token; names of what is away are shown to admins.',
      tags: ['Service'],
      security: [],
      response: {
        200: ok(readiness, 'The node is ready.'),
        503: ok(
          readiness,
          'The node is not ready: the job store cannot be written, the queue is full, nothing can be signed, or the service is stopping.',
        ),
        ...errorResponses([405]),
      },
    },
    handler: async (request, reply) => {
      const state = await jobs.readiness(request.caller);
      return reply.status(state.ready ? 200 : 503).send(state);
    },
  });
}

/** Adds the configuration in force, for admins. */
function addConfigurationRoute(app: FastifyInstance, configNow: () => Config, identities: NodeIdentities | null): void {
  app.route({
    method: 'GET',
    url: '/v2/configuration',
    logLevel: 'warn',
    schema: {
      operationId: 'configuration',
      summary: 'The configuration in force',
      description: 'Without secrets. For admins, and for everybody where no tokens are set.',
      tags: ['Service'],
      response: { 200: ok(configuration, 'The configuration.'), ...errorResponses([401, 403, 404, 405]) },
    },
    handler: async ({ caller }) => {
      if (!caller.isAdmin) throw new AppError('ADMIN_NEEDED', {});
      const config = configNow();
      return { ...shownConfig(config), ...(identities !== null && identitiesInForce(identities, config)) };
    },
  });
}

function identitiesInForce(own: NodeIdentities, config: Config): Pick<ShownConfig, 'identity' | 'identities'> {
  const usual = own.identityOf(defaultIdentityOf(config));
  return {
    ...(usual !== null && { identity: shownIdentity(usual) }),
    identities: shownIdentities(own, config),
  };
}

/** Adds the reload of the configuration, for admins. */
function addReloadRoute(app: FastifyInstance, reload: Reload): void {
  const answer = async ({ caller }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (!caller.isAdmin) throw new AppError('ADMIN_NEEDED', {});
    return await reply.send(await reload({ caller: caller.name }));
  };
  app.route({
    method: 'POST',
    url: '/v2/reload',
    schema: {
      operationId: 'reload',
      summary: 'Reload the configuration',
      description:
        'Reads the configuration of this node again, and puts its identities, `auth.tokens`, `auth.callers` and trust lists into force. Inputs that run finish with what they began with; those that wait take what is in force when they start. A configuration that cannot be used changes nothing: the error says why. For admins, and for everybody where no tokens are set. SIGHUP does the same.',
      tags: ['Service'],
      response: {
        200: ok(reloadResponse, 'The configuration is in force.'),
        ...errorResponses([400, 401, 403, 404, 405, 500, 503]),
      },
    },
    // Answered before a body is read: none is needed.
    onRequest: answer,
    handler: answer,
  });
}

/** Reloads the configuration in the name of a caller. */
export type Reload = (by: { readonly caller: string | null }) => Promise<ReloadResponse>;

/** Adds the trust lists, so that a browser judges signers as this service does. */
function addTrustListsRoute(app: FastifyInstance, trust: TrustSource): void {
  app.route({
    method: 'GET',
    url: '/v2/trust-lists',
    logLevel: 'warn',
    schema: {
      operationId: 'trust-lists',
      summary: 'The trust lists',
      description: 'The certificates that the settings of `trust` name, as they are in force.',
      tags: ['Service'],
      response: { 200: ok(trustLists, 'The lists.'), ...errorResponses([401, 403, 404, 405]) },
    },
    handler: async (): Promise<ShownTrustLists> => {
      const { signers, authorities, publishers, allowed } = trust.current.data;
      return {
        signers: [...signers],
        authorities: [...authorities],
        publishers: [...publishers],
        allowed: [...allowed],
      };
    },
  });
}

const comingSoon = {
  501: {
    description: 'Reserved: there is no watermarking yet.',
    content: { 'text/plain': { schema: z.literal('Coming soon') } },
  },
  ...errorResponses([401, 403, 405]),
};

/** Adds the two routes that are reserved for watermarking. */
function addWatermarkRoutes(app: FastifyInstance): void {
  app.route({
    method: 'POST',
    url: '/v2/watermark',
    schema: { operationId: 'watermark', summary: 'Reserved', tags: ['Watermark'], response: comingSoon },
    onRequest: answerComingSoon,
    handler: answerComingSoon,
  });
  app.route({
    method: 'GET',
    url: '/v2/watermark/:id',
    schema: {
      operationId: 'get-watermark',
      summary: 'Reserved',
      tags: ['Watermark'],
      params: z.object({ id: z.string().describe('Reserved.') }),
      response: comingSoon,
    },
    onRequest: answerComingSoon,
    handler: answerComingSoon,
  });
}

/** Answers before a body is read: whatever is sent here, there is nothing yet that could refuse it. */
async function answerComingSoon(_request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  return await reply.status(501).type('text/plain; charset=utf-8').send('Coming soon');
}

/** Adds `/metrics`, and measures how every request is answered. Call it before the other routes are added. */
export function addMetrics(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onResponse', async ({ method, routeOptions }, { statusCode: status, elapsedTime: ms }) => {
    // Files and pages for browsers are many, and all alike.
    if (isHidden(routeOptions.schema)) return;
    // The pattern, not the path: paths are without number. A request that no route takes has no pattern.
    metrics.requestAnswered({ method, route: routeOptions.url ?? 'unknown', status, ms });
  });
  app.route({
    method: 'GET',
    url: '/metrics',
    logLevel: 'warn',
    schema: {
      operationId: 'metrics',
      summary: 'Metrics',
      description:
        'In the text format of Prometheus: what waits and runs and for how long, durations of requests, of inputs and of their phases, calls of signers, time-stamp authorities and object stores, what is away, disks, the signing identity, and the process itself. What is said of nodes is of this one. What names callers and other nodes is told to admins only.',
      tags: ['Service'],
      response: {
        200: { description: 'The metrics.', content: { 'text/plain': { schema: z.string() } } },
        ...errorResponses([401, 403, 405, 503]),
      },
    },
    handler: async ({ caller }, reply) =>
      reply.type(metrics.contentType).send(await metrics.render({ isAdmin: caller.isAdmin })),
  });
}

function isHidden(schema: object | undefined): boolean {
  return schema !== undefined && 'hide' in schema;
}

const login = z
  .strictObject({ token: z.string().min(1).max(4096).describe('A token of `auth.tokens`.') })
  .meta({ id: 'LoginRequest', description: 'A token, to be kept as a cookie.', examples: [{ token: 'secret-token' }] });

const session = z
  .object({
    login_required: z.boolean().describe('True when `auth.tokens` is set.'),
    caller: z.string().nullable().describe('The name of the token; null where no tokens are set.'),
    admin: z.boolean().describe('Sees and cancels the jobs of all callers.'),
    identities: z
      .array(z.string())
      .readonly()
      .describe('The signing identities that the caller may choose with `params.identity`, its default first.'),
  })
  .meta({
    id: 'Session',
    description: 'Who a request comes from.',
    examples: [{ login_required: true, caller: 'newsroom', admin: false, identities: ['news', 'sport'] }],
  });

function addSessionRoute(app: FastifyInstance, configNow: () => Config): void {
  app.route({
    method: 'GET',
    url: '/v2/session',
    schema: {
      operationId: 'get-session',
      summary: 'Who am I?',
      tags: ['Service'],
      response: { 200: ok(session, 'The caller.'), ...errorResponses([401, 403, 405]) },
    },
    handler: async ({ caller }) => ({
      login_required: configNow().auth.tokens.length > 0,
      caller: caller.name,
      admin: caller.isAdmin,
      identities: usableIdentities(caller.name, configNow()),
    }),
  });
}

/** Adds the login of browsers: the token is kept in a cookie that no script can read. */
function addLoginRoute(app: FastifyInstance): void {
  app.route<{ Body: z.infer<typeof login> }>({
    method: 'POST',
    url: '/v2/session',
    config: { open: true },
    schema: {
      operationId: 'login',
      summary: 'Log a browser in',
      description:
        'Answers with a cookie that stands for the token until the browser is closed. Requests with the cookie that change something must come from a page of this address (`Origin`).',
      tags: ['Service'],
      security: [],
      body: login,
      response: {
        204: z.undefined().describe('The cookie is set.'),
        ...errorResponses([400, 401, 403, 405, 413, 415]),
      },
    },
    handler: async (request, reply) => {
      const { token } = request.body;
      request.identify(token);
      const secure = request.headers.origin?.startsWith('https:') ?? false;
      reply.setCookie(SESSION_COOKIE, token, { path: '/', httpOnly: true, sameSite: 'strict', secure });
      return reply.status(204).send();
    },
  });
}

function addLogoutRoute(app: FastifyInstance): void {
  app.route({
    method: 'DELETE',
    url: '/v2/session',
    config: { open: true },
    schema: {
      operationId: 'logout',
      summary: 'Log a browser out',
      tags: ['Service'],
      security: [],
      response: { 204: z.undefined().describe('The cookie is deleted.'), ...errorResponses([403, 405]) },
    },
    handler: async (_request, reply) => {
      reply.clearCookie(SESSION_COOKIE, { path: '/', httpOnly: true, sameSite: 'strict' });
      return reply.status(204).send();
    },
  });
}
