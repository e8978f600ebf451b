import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { Config } from '#config/config.ts';
import { CALLBACK_WEBHOOKS } from './callback-webhook.ts';
import { errorComponentName, errorComponents } from './error-responses.ts';

/** The version of the interface, as the contract states it; not the version of the program. */
const INTERFACE_VERSION = '0.1.11';

const SCHEMAS = '#/components/schemas/';
const RESPONSES = '#/components/responses/';
const ERROR_SCHEMA = `${SCHEMAS}ApiErrorResponse`;
/** What the type provider adds to the names of schemas that requests use. */
const REQUEST_SUFFIX = 'Input';

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
  const zodToJsonConfig = { override: adjustSchema };
  const transformObject = createJsonSchemaTransformObject({ zodToJsonConfig });
  await app.register(swagger, {
    openapi: documentHead(config),
    transform: createJsonSchemaTransform({ zodToJsonConfig }),
    transformObject: (document) =>
      withErrorComponents(withContractNames(transformObject(document) as unknown as Document)) as never,
  });
}

const DESCRIPTION =
  'Signs video files, audio files and streaming publications with C2PA manifests, and packages folders of media into such publications. Work is done as jobs over one or more inputs: asynchronously, to be polled, or synchronously.';

const DEVELOPMENT_IDENTITY =
  '**This deployment signs with a development identity, which nobody has a reason to trust.**';

/** The document without its routes. Who looks at it is told where outputs are not to be published. */
function documentHead({ signing }: Config): NonNullable<FastifyDynamicSwaggerOptions['openapi']> {
  const isDevelopment = signing.certificate_path === undefined;
  const description = isDevelopment ? `${DESCRIPTION}\n\n${DEVELOPMENT_IDENTITY}` : DESCRIPTION;
  return { ...DOCUMENT_HEAD, info: { ...DOCUMENT_HEAD.info, description } };
}

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

/**
 * Requests are closed, unknown fields are refused. Responses are open: fields may be added to them. No schema at all is
 * an empty body.
 */
function adjustSchema({
  zodSchema,
  jsonSchema,
}: {
  zodSchema: z.core.$ZodTypes;
  jsonSchema: z.core.JSONSchema.BaseSchema;
}): void {
  const { def } = zodSchema._zod;
  if (def.type === 'object' && def.catchall === undefined) delete jsonSchema.additionalProperties;
  if (def.type === 'undefined') jsonSchema.type = 'null';
}

/**
 * The type provider emits every schema twice, for requests and for responses. No schema of ours transforms anything,
 * so both would say the same of a schema that is used for both: those in use are kept, under the contract's names.
 */
function withContractNames(document: Document): Document {
  const { schemas } = document.components;
  const contractName = (name: string): string =>
    name.endsWith(REQUEST_SUFFIX) ? name.slice(0, -REQUEST_SUFFIX.length) : name;
  const used = [...usedSchemas([document.paths, document.webhooks], schemas)].sort();
  const renamed = Object.fromEntries(used.map((name) => [contractName(name), schemas[name] ?? null]));
  return mapReferences({ ...document, components: { ...document.components, schemas: renamed } }, contractName);
}

/** The names of the schemas that a part of the document refers to, directly or through other schemas. */
function usedSchemas(start: Json, schemas: JsonObject): Set<string> {
  const used = new Set<string>();
  const follow = (part: Json): void => {
    mapReferences(part, (name) => {
      if (used.has(name)) return name;
      used.add(name);
      follow(schemas[name] ?? null);
      return name;
    });
  };
  follow(start);
  return used;
}

/** A copy in which every reference to a schema has a new name. */
function mapReferences<Part extends Json>(part: Part, rename: (name: string) => string): Part {
  return JSON.parse(JSON.stringify(part), (key, value: unknown) =>
    key === '$ref' && typeof value === 'string' && value.startsWith(SCHEMAS)
      ? SCHEMAS + rename(value.slice(SCHEMAS.length))
      : value,
  ) as Part;
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
