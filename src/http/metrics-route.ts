import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Metrics } from '#telemetry/metrics.ts';
import { errorResponses } from './error-responses.ts';

/** Adds `/metrics`, and measures how every request is answered. Call it before the other routes are added. */
export function addMetrics(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onResponse', async ({ method, routeOptions }, { statusCode: status, elapsedTime: ms }) => {
    // The pattern, not the path: paths are without number. What no route takes has no pattern.
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
        'In the text format of Prometheus: what waits and runs and for how long, durations of requests, of inputs and of their phases, calls of signers and object stores, and the process itself. What is said of nodes is of this one. What is counted of single callers is told to admins only.',
      tags: ['Service'],
      response: {
        200: { description: 'The metrics.', content: { 'text/plain': { schema: z.string() } } },
        ...errorResponses([401, 403, 405, 503]),
      },
    },
    handler: async ({ caller }, reply) =>
      reply.type(metrics.contentType).send(await metrics.render({ ofCallers: caller.isAdmin })),
  });
}
