import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { SESSION_COOKIE } from '../hooks/authentication.ts';
import { errorResponses, ok } from '../openapi/responses.ts';

const login = z
  .strictObject({ token: z.string().min(1).max(4096).describe('A token of `auth.tokens`.') })
  .meta({ id: 'LoginRequest', description: 'A token, to be kept as a cookie.', examples: [{ token: 'secret-token' }] });

const session = z
  .object({
    login_required: z.boolean().describe('True when `auth.tokens` is set.'),
    caller: z.string().nullable().describe('The name of the token; null where no tokens are set.'),
    admin: z.boolean().describe('Sees and cancels the jobs of all callers.'),
  })
  .meta({
    id: 'Session',
    description: 'Who a request comes from.',
    examples: [{ login_required: true, caller: 'newsroom', admin: false }],
  });

/** Adds login and logout for browsers: the token is kept in a cookie that no script can read. */
export function addSessionRoutes(app: FastifyInstance, loginRequired: boolean): void {
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
      login_required: loginRequired,
      caller: caller.name,
      admin: caller.isAdmin,
    }),
  });
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
