import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type ApiReference, loadApiReference } from './api-reference.ts';
import { errorResponses } from './error-responses.ts';

/** Adds `/openapi.json` and the interactive reference at `/docs`, script included: it needs no internet. */
export function addDocuments(app: FastifyInstance): void {
  let loaded: ApiReference | undefined;
  const reference = async (): Promise<ApiReference> => {
    loaded ??= await loadApiReference();
    return loaded;
  };
  const sendPage = async (_request: FastifyRequest, reply: FastifyReply) => {
    const { page, policy } = await reference();
    return reply.type('text/html; charset=utf-8').header('Content-Security-Policy', policy).send(page);
  };
  app.route({
    method: 'GET',
    url: '/openapi.json',
    config: { open: true },
    schema: {
      operationId: 'openapi',
      summary: 'This document',
      tags: ['Service'],
      security: [],
      response: { 200: jsonDocument, ...errorResponses([403, 405]) },
    },
    handler: async () => app.swagger(),
  });
  app.route({
    method: 'GET',
    url: '/docs',
    config: { open: true },
    schema: {
      operationId: 'docs',
      summary: 'The interactive reference',
      tags: ['Service'],
      security: [],
      response: { 200: htmlPage, ...errorResponses([403, 405]) },
    },
    handler: sendPage,
  });
  // Where many such references are, and so what people type.
  app.route({ method: 'GET', url: '/docs/', config: { open: true }, schema: { hide: true }, handler: sendPage });
  app.route({
    method: 'GET',
    url: '/docs/scalar.js',
    config: { open: true },
    schema: { hide: true },
    handler: async (_request, reply) => reply.type('text/javascript; charset=utf-8').send((await reference()).script),
  });
}

const jsonDocument = z.looseObject({ openapi: z.literal('3.1.0') }).describe('An OpenAPI 3.1 document.');

const htmlPage = { description: 'A page for browsers.', content: { 'text/html': { schema: z.string() } } };
