import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errorResponses } from './error-responses.ts';
import type { JobService } from './job-service.ts';

/** Adds the health probe. */
export function addHealthRoute(app: FastifyInstance, jobs: JobService): void {
  app.route({
    method: 'GET',
    url: '/v2/health',
    config: { open: true },
    logLevel: 'warn',
    schema: {
      operationId: 'health',
      summary: 'Liveness and readiness',
      description: 'Needs no token.',
      tags: ['Service'],
      security: [],
      response: {
        200: z.undefined().describe('The service takes jobs. The body is empty.'),
        503: z.undefined().describe('The job store cannot be reached. The body is empty.'),
        ...errorResponses([405]),
      },
    },
    handler: async (_request, reply) => reply.status((await jobs.healthy()) ? 200 : 503).send(),
  });
}

const comingSoon = {
  501: {
    description: 'Reserved: there is no watermarking yet.',
    content: { 'text/plain': { schema: z.literal('Coming soon') } },
  },
  ...errorResponses([401, 405]),
};

/** Adds the two routes that are reserved for watermarking. */
export function addWatermarkRoutes(app: FastifyInstance): void {
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
