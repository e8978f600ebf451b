import { readFileSync } from 'node:fs';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errorResponses } from '../openapi/responses.ts';

const jsonDocument = z.looseObject({ openapi: z.literal('3.1.0') }).describe('An OpenAPI 3.1 document.');

const htmlPage = { description: 'A page for browsers.', content: { 'text/html': { schema: z.string() } } };

/** Lets the page run the scripts of this service, talk to it, and nothing else; no other page may frame it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Adds `/openapi.json` and the interactive reference at `/docs`, with its script: it needs no internet. */
export function addDocuments(app: FastifyInstance): void {
  const page = readFileSync(new URL('../../../console/docs.html', import.meta.url));
  let script: Promise<Buffer> | undefined;
  const scalarScript = (): Promise<Buffer> => {
    script ??= loadScalarScript();
    return script;
  };
  const sendPage = async (_request: FastifyRequest, reply: FastifyReply) =>
    reply.type('text/html; charset=utf-8').header('Content-Security-Policy', CONTENT_SECURITY_POLICY).send(page);
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
  // The address that people try first.
  app.route({ method: 'GET', url: '/docs/', config: { open: true }, schema: { hide: true }, handler: sendPage });
  app.route({
    method: 'GET',
    url: '/docs/scalar.js',
    config: { open: true },
    schema: { hide: true },
    handler: async (_request, reply) => reply.type('text/javascript; charset=utf-8').send(await scalarScript()),
  });
}

/**
 * Returns Scalar's script for browsers. Its package has the script only inside a module, and its plugin serves it: the plugin
 * runs in a server that does not listen. The module takes 28 MB of memory, so it is loaded with the first request.
 */
async function loadScalarScript(): Promise<Buffer> {
  const { default: scalar } = await import('@scalar/fastify-api-reference');
  const inner = Fastify();
  await inner.register(scalar, { routePrefix: '/docs', configuration: { url: '/openapi.json' } });
  const { rawPayload } = await inner.inject('/docs/js/scalar.js');
  await inner.close();
  return rawPayload;
}
