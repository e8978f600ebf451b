import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { z } from 'zod';
import { operations } from '#operations/registry.ts';
import { serve, type TestServer } from '../support/servers/serve.ts';

interface Operation {
  readonly requestBody?: { readonly required: boolean };
  readonly responses: Record<string, { $ref?: string; description?: string; content?: object }>;
}
interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string; readonly description: string };
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: {
    readonly schemas: Record<string, { examples?: unknown[] }>;
    readonly responses: Record<string, { content: { 'application/json': { example: unknown } } }>;
  };
}

/** The reference by another name, and what a browser needs to show it; no part of the interface. */
const PAGE_PARTS = [/^GET \/docs\/(scalar\.js)?$/, /^GET \/$/, /^GET \/console\//];

/** Fastify prints a route with a wildcard as "*", without the parts of the path before it. */
const WILDCARD_ROUTES = ['GET /v2/jobs/{id}/outputs/{index}/{path}'];

/** Reads Fastify's tree of routes, where a child stands four columns further in and continues its parent's path. */
function routesOf(tree: string): string[] {
  const prefixes: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', path = '', methods = ''] = /^([├└─│ ]*)(\S+)(?: \((.+)\))?/.exec(line) ?? [];
    const depth = indent.length / 4;
    prefixes[depth] = (prefixes[depth - 1] ?? '') + path;
    const documented = methods.split(', ').filter((method) => method !== '' && method !== 'HEAD');
    return documented.map((method) => `${method} ${prefixes[depth]?.replace(/:(\w+)/g, '{$1}')}`);
  });
}

let server: TestServer;
let document: Document;
let routes: string[];

before(async () => {
  server = await serve();
  document = (await (await fetch(`${server.base}/openapi.json`)).json()) as Document;
  routes = routesOf(server.app.printRoutes({ commonPrefix: false })).filter(
    (route) => !PAGE_PARTS.some((part) => part.test(route)),
  );
});

after(() => server.app.close());

describe('/openapi.json', () => {
  test('is a valid OpenAPI 3.1 document of the interface version 0.1.11', async () => {
    assert.equal(document.openapi, '3.1.0');
    assert.equal(document.info.version, '0.1.11');
    assert.match(document.info.description, /^Attestream \d+\.\d+\.\d+ /);
    const { valid, errors } = await new Validator().validate(
      structuredClone(document) as unknown as Record<string, unknown>,
    );
    assert.equal(valid, true, JSON.stringify(errors));
  });

  test('tells of a development identity, and only where outputs are signed with one', async () => {
    assert.match(document.info.description, /development identity/);
    const own = { SERVICE__SIGNING__CERTIFICATE_PATH: 'chain.pem', SERVICE__SIGNING__PRIVATE_KEY_PATH: 'key.pem' };
    const named = {
      SERVICE__SIGNING__IDENTITIES__NEWS__CERTIFICATE_PATH: 'chain.pem',
      SERVICE__SIGNING__IDENTITIES__NEWS__SIGNER__TYPE: 'pem',
      SERVICE__SIGNING__IDENTITIES__NEWS__SIGNER__PRIVATE_KEY_PATH: 'key.pem',
    };
    for (const identity of [own, named]) {
      await using configured = await serve(identity);
      const { info } = (await (await fetch(`${configured.base}/openapi.json`)).json()) as Document;
      assert.doesNotMatch(info.description, /development identity/);
    }
  });

  test('has every route of the service, and no other', () => {
    const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    assert.ok(routes.length >= 8 + 2 * operations.length - 2);
    const printed = routes.filter((route) => !route.endsWith('*'));
    assert.deepEqual(documented.sort(), [...printed, ...WILDCARD_ROUTES].sort());
  });

  test('has both forms of every operation, with its errors', () => {
    for (const { path } of operations) {
      const asyncForm = document.paths[`/v2${path}`]?.['post'] ?? assert.fail(path);
      const syncForm = document.paths[`/v2/sync${path}`]?.['post'] ?? assert.fail(path);
      const statuses = ['200', '400', '401', '403', '405', '409', '413', '415', '429', '500', '503'];
      assert.deepEqual(Object.keys(asyncForm.responses), statuses);
      assert.deepEqual(Object.keys(syncForm.responses), [...statuses, '408'].sort());
    }
  });

  test("names its components as the contract does, and refers to nothing that it doesn't hold", () => {
    const { schemas } = document.components;
    for (const name of [
      'ApiInputRef ApiOutputSpec ApiAssertionDef ApiParent ApiParentFileSource ApiParentOverride',
      'C2paVideoRequest C2paAudioRequest JobResponse JobResultResponse ApiErrorResponse',
    ].flatMap((line) => line.split(' '))) {
      assert.ok(name in schemas, name);
    }
    for (const [, kind = '', name = ''] of JSON.stringify(document).matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      assert.ok(name in ((document.components as unknown as Record<string, object>)[kind] ?? {}), `${kind}/${name}`);
    }
  });

  test('requires the body of a submission, and none of a retry', () => {
    const isRequired = (path: string) => document.paths[path]?.['post']?.requestBody?.required;
    assert.deepEqual(['/v2/verify', '/v2/jobs/{id}/retry'].map(isRequired), [true, false]);
  });

  test('describes every response', () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [status, response] of Object.entries(
        Object.values(methods).flatMap((operation) => Object.entries(operation.responses)),
      )) {
        assert.ok(
          response[1].$ref !== undefined || response[1].description !== 'Default Response',
          `${path} ${status}`,
        );
      }
    }
  });

  test('shows examples that its schemas accept', () => {
    const shown = Object.entries(document.components.schemas).flatMap(([name, { examples = [] }]) =>
      examples.map((example) => [name, example] as const),
    );
    for (const [name, example] of shown) {
      const schema = [...(z.globalRegistry._idmap as Map<string, z.ZodType>)].find(([id]) => id === name)?.[1];
      assert.equal(schema?.safeParse(example).success, true, `${name}: ${JSON.stringify(example)}`);
    }
    for (const response of Object.values(document.components.responses)) {
      const errorSchema = z.globalRegistry._idmap.get('ApiErrorResponse') as z.ZodType;
      assert.equal(errorSchema.safeParse(response.content['application/json'].example).success, true);
    }
    assert.ok(shown.length >= 11);
  });

  test('closes requests against unknown fields, and leaves responses open for new ones', () => {
    const { schemas } = document.components as unknown as {
      schemas: Record<string, { additionalProperties?: unknown }>;
    };
    assert.equal(schemas['C2paVideoRequest']?.additionalProperties, false);
    assert.equal(schemas['JobResultResponse']?.additionalProperties, undefined);
  });
});

describe('/docs', () => {
  test('is found with a slash at its end, too', async () => {
    const [page, slashed] = await Promise.all(['/docs', '/docs/'].map((path) => fetch(server.base + path)));
    assert.equal(slashed?.status, 200);
    assert.equal(await slashed?.text(), await page?.text());
  });

  test('needs nothing from another server', async () => {
    const page = await (await fetch(`${server.base}/docs`)).text();
    assert.match(page, /src="\/docs\/scalar\.js"/);
    assert.doesNotMatch(page, /(?:src|href)="(?:https?:)?\/\//);
    const script = await fetch(`${server.base}/docs/scalar.js`);
    assert.match(script.headers.get('content-type') ?? '', /^text\/javascript/);
    assert.ok((await script.arrayBuffer()).byteLength > 1_000_000);
  });

  test('is off with the document where server.docs is false', async () => {
    await using plain = await serve({ SERVICE__SERVER__DOCS: 'false' });
    for (const path of ['/openapi.json', '/docs', '/docs/', '/docs/scalar.js']) {
      assert.equal((await fetch(plain.base + path)).status, 404, path);
    }
    assert.equal((await fetch(`${plain.base}/v2/health`)).status, 200);
    for (const path of ['/nowhere', '/', '/console/vendor/nothing.js']) {
      assert.doesNotMatch(await (await fetch(plain.base + path)).text(), /openapi/, path);
    }
  });
});
