import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';

/** The version of the interface, as the contract states it; not the version of the program. */
const INTERFACE_VERSION = '0.1.11';

const COMPONENT = '#/components/schemas/';
/** What the type provider adds to the names of schemas that requests use. */
const REQUEST_SUFFIX = 'Input';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Schemas = Readonly<Record<string, Json>>;

/** Collects the routes that are added afterwards into the OpenAPI 3.1 document, which `app.swagger()` returns. */
export async function collectDocument(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Attestream: Media Provenance Signing and Packaging Service',
        version: INTERFACE_VERSION,
        description:
          'Signs video and audio files with C2PA manifests. Work is done as jobs over one or more inputs: asynchronously, to be polled, or synchronously.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/', description: 'This service' }],
      tags: [
        { name: 'Operations', description: 'Submit work.' },
        { name: 'Jobs', description: 'Follow work.' },
        { name: 'Service', description: 'Probe the service.' },
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
    },
    transform: jsonSchemaTransform,
    transformObject: (document) => withContractNames(jsonSchemaTransformObject(document) as never),
  });
}

/**
 * The type provider emits every schema twice, for requests and for responses. No schema of ours transforms anything,
 * so the two of a schema that is used for both would say the same: the ones in use are kept, under the contract's names.
 */
function withContractNames<Document extends { components?: { schemas?: object } }>(document: Document): Document {
  const { schemas = {}, ...components } = document.components ?? {};
  const used = usedSchemas({ ...document, components: null } as never, schemas as Schemas);
  const contractName = (name: string): string => (name.endsWith(REQUEST_SUFFIX) ? name.slice(0, -REQUEST_SUFFIX.length) : name);
  const renamed = Object.fromEntries([...used].sort().map((name) => [contractName(name), (schemas as Schemas)[name]]));
  return mapReferences({ ...document, components: { ...components, schemas: renamed } } as never, contractName) as never;
}

/** The names of the schemas that a document refers to, directly or through other schemas. */
function usedSchemas(document: Json, schemas: Schemas): Set<string> {
  const used = new Set<string>();
  const follow = (part: Json): void => {
    mapReferences(part, (name) => {
      if (!used.has(name)) {
        used.add(name);
        follow(schemas[name] ?? null);
      }
      return name;
    });
  };
  follow(document);
  return used;
}

/** A copy in which every reference to a schema has a new name. */
function mapReferences(part: Json, rename: (name: string) => string): Json {
  return JSON.parse(JSON.stringify(part), (key, value: unknown) =>
    key === '$ref' && typeof value === 'string' && value.startsWith(COMPONENT)
      ? COMPONENT + rename(value.slice(COMPONENT.length))
      : value,
  ) as Json;
}
