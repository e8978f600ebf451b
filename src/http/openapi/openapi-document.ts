import { readFileSync } from 'node:fs';
import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifySchema } from 'fastify';
import { z } from 'zod';
import type { Config } from '#config/config.ts';
import { signsForDevelopment } from '#config/identities.ts';
import { RELEASE } from '#config/release.ts';
import { jobCallback, SIGNATURE_HEADER } from '#contract/job-callback.ts';
import { INTERFACE_VERSION } from '#contract/service.ts';
import { errorComponentName, errorComponents, errorResponses } from './responses.ts';

const SCHEMAS = '#/components/schemas/';
const RESPONSES = '#/components/responses/';
const ERROR_SCHEMA = `${SCHEMAS}ApiErrorResponse`;

type Json = null | boolean | number | string | readonly Json[] | JsonObject;
interface JsonObject {
  readonly [key: string]: Json;
}

/** The parts of a document that are rewritten here. */
interface Document extends JsonObject {
  readonly paths: { readonly [path: string]: { readonly [method: string]: JsonObject } };
  readonly webhooks: JsonObject;
  readonly components: { readonly schemas: JsonObject };
}

/** Collects the routes that are added afterwards into the OpenAPI 3.1 document, which `app.swagger()` returns. */
export async function collectDocument(app: FastifyInstance, config: Config): Promise<void> {
  await app.register(swagger, {
    openapi: documentHead(config),
    // OpenAPI has no wildcard; a parameter that may hold slashes comes nearest.
    transform: ({ schema, url }) => ({ schema: schema && routeSchema(schema), url: url.replace(/\*$/, ':path') }),
    transformObject: (document) =>
      withErrorComponents(
        withOptionalBodies({
          ...('openapiObject' in document && document.openapiObject),
          components: { ...DOCUMENT_HEAD.components, schemas: namedSchemas() },
        } as unknown as Document),
      ) as never,
  });
}

const DESCRIPTION = `${RELEASE.product} ${RELEASE.version} signs video files, audio files and streaming publications with C2PA manifests, verifies such files and publications, and packages folders of media into publications. Work is done as jobs over one or more inputs: asynchronously, to be polled, or synchronously.`;

const DEVELOPMENT_IDENTITY =
  '**This deployment signs with a development identity, which nobody has a reason to trust.**';

/** Returns the document without its routes. Its introduction says where outputs are not to be published. */
function documentHead(config: Config): NonNullable<FastifyDynamicSwaggerOptions['openapi']> {
  const description = signsForDevelopment(config) ? `${DESCRIPTION}\n\n${DEVELOPMENT_IDENTITY}` : DESCRIPTION;
  return { ...DOCUMENT_HEAD, info: { ...DOCUMENT_HEAD.info, description } };
}

/** The part of the document about the requests that this service sends to a `callback_url`. */
const CALLBACK_WEBHOOKS = {
  jobEnded: {
    post: {
      operationId: 'job-ended',
      summary: 'A job has ended',
      description:
        'Sent to the `callback_url` of a submission until it is accepted, for a day at most: tell repetitions by `job_id`. Anything but a 2xx answer within 15 seconds is a failure, also a redirect; it is tried again after 5 seconds, then ever more slowly.',
      tags: ['Jobs'],
      security: [],
      parameters: [
        {
          name: SIGNATURE_HEADER,
          in: 'header',
          required: true,
          description:
            '`t=<unix seconds>,v1=<hex>`: the HMAC-SHA256 of `<t>.<body>` with `callbacks.secret`. Compute it over the bytes as they came, compare in constant time, and refuse a time that is minutes away.',
          schema: { type: 'string' },
        },
      ],
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: { $ref: `#/components/schemas/${jobCallback.meta()?.id}` } },
        },
      },
      responses: { '2XX': { description: 'The callback was taken.' } },
    },
  },
} as const;

const DOCUMENT_HEAD = {
  openapi: '3.1.0',
  info: {
    title: 'Attestream: Media Provenance Signing and Packaging Service',
    version: INTERFACE_VERSION,
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  servers: [{ url: '/', description: 'This service' }],
  tags: [
    { name: 'Operations', description: 'Submit work.' },
    { name: 'Jobs', description: 'Follow work.' },
    { name: 'Service', description: 'Probe and explore the service.' },
    { name: 'Watermark', description: 'Reserved.' },
  ],
  components: {
    securitySchemes: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        description: 'One of `auth.tokens`. Where none is set, requests need no token.',
      },
    },
  },
  security: [{}, { bearer: [] }],
  webhooks: CALLBACK_WEBHOOKS as never,
} satisfies NonNullable<FastifyDynamicSwaggerOptions['openapi']>;

/** Converts the zod schemas of a route. */
function routeSchema({ response = {}, ...schema }: FastifySchema): FastifySchema {
  const { headers, querystring, params, body } = schema;
  const parts = Object.entries({ headers, querystring, params, body }).filter(([, part]) => part !== undefined);
  return {
    ...schema,
    ...Object.fromEntries(parts.map(([name, part]) => [name, jsonSchema(part as z.ZodType)])),
    response: mapValues(
      response as JsonObject,
      (described) => responseSchema(described as unknown as z.ZodType) as Json,
    ),
  };
}

/** Converts a response: a schema of JSON, or a description with a schema for each media type. */
function responseSchema(response: z.ZodType | { readonly content: object }): object {
  if (response instanceof z.ZodType) return jsonSchema(response);
  const content = Object.entries(response.content).map(([type, { schema }]) => [type, { schema: jsonSchema(schema) }]);
  return { ...response, content: Object.fromEntries(content) };
}

/** Settings for all schemas. Requests refuse unknown fields and responses may get new ones, which is how `input` reads. */
const JSON_SCHEMA = {
  target: 'draft-2020-12',
  io: 'input',
  override: ({ zodSchema, jsonSchema: written }) => {
    // Without a schema, Fastify sends an empty body.
    if (zodSchema instanceof z.ZodUndefined) written.type = 'null';
  },
  unrepresentable: 'any',
} as const satisfies z.core.ToJSONSchemaParams;

/** Converts a schema; one that has a name becomes a reference to it. */
function jsonSchema(schema: z.ZodType): object {
  const { id } = schema.meta() ?? {};
  if (id !== undefined) return { $ref: SCHEMAS + id };
  const { $schema: _, ...written } = z.toJSONSchema(schema, JSON_SCHEMA);
  return written;
}

/** Converts all schemas of the contract that have a name. */
function namedSchemas(): JsonObject {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { ...JSON_SCHEMA, uri: (id) => SCHEMAS + id });
  return mapValues(schemas as unknown as JsonObject, (schema) => {
    const { $schema: _, $id: __, id: ___, ...written } = schema as JsonObject;
    return written;
  });
}

/** Marks the bodies that may be left out: those whose schema has a default. The plugin requires every body. */
function withOptionalBodies(document: Document): Document {
  const isOptional = (body: Json): boolean =>
    Object.entries(document.components.schemas).some(
      ([name, schema]) => 'default' in (schema as JsonObject) && JSON.stringify(body).includes(`"${SCHEMAS}${name}"`),
    );
  const paths = mapValues(document.paths, (methods) =>
    mapValues(methods as JsonObject, (operation) => {
      const { requestBody, ...rest } = operation as JsonObject;
      if (requestBody === undefined) return rest;
      return { ...rest, requestBody: { ...(requestBody as JsonObject), required: !isOptional(requestBody) } };
    }),
  );
  return { ...document, paths } as Document;
}

/** Says what each error status means, with its header and an example, once for all routes. */
function withErrorComponents(document: Document): JsonObject {
  const isError = (response: Json): boolean => JSON.stringify(response).includes(ERROR_SCHEMA);
  const paths = mapValues(document.paths, (methods) =>
    mapValues(methods as JsonObject, (operation) => ({
      ...(operation as JsonObject),
      responses: mapValues((operation as { responses: JsonObject }).responses, (response, status) =>
        isError(response) ? { $ref: RESPONSES + errorComponentName(status) } : response,
      ),
    })),
  );
  const responses = errorComponents(ERROR_SCHEMA) as JsonObject;
  return { ...document, paths, components: { ...document.components, responses } };
}

function mapValues(object: JsonObject, map: (value: Json, key: string) => Json): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}

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
  addReference(app);
}

function addReference(app: FastifyInstance): void {
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
