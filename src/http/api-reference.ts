import Fastify, { type FastifyInstance } from 'fastify';

/** The page and its script, as they are sent. */
interface ApiReference {
  readonly page: string;
  readonly script: Buffer;
}

/**
 * Serves the interactive reference at `/docs`, script included: it needs no internet. The package behind it takes
 * 28 MB of memory once loaded, so it is loaded when somebody first looks.
 */
export function addApiReference(app: FastifyInstance): void {
  let loading: Promise<ApiReference> | undefined;
  const reference = (): Promise<ApiReference> => {
    loading ??= loadApiReference();
    return loading;
  };
  app.get('/docs', { config: { open: true }, schema: { hide: true } }, async (_request, reply) =>
    reply.type('text/html; charset=utf-8').send((await reference()).page),
  );
  app.get('/docs/scalar.js', { config: { open: true }, schema: { hide: true } }, async (_request, reply) =>
    reply
      .type('text/javascript; charset=utf-8')
      .header('Cache-Control', 'public, max-age=86400')
      .send((await reference()).script),
  );
}

/** Takes the page and the script from the package's own plugin, run in a server that never listens. */
async function loadApiReference(): Promise<ApiReference> {
  const { default: scalar } = await import('@scalar/fastify-api-reference');
  const inner = Fastify();
  await inner.register(scalar, {
    routePrefix: '/docs',
    configuration: {
      url: '/openapi.json',
      cdn: '/docs/scalar.js',
      pageTitle: 'Attestream API',
      theme: 'default',
      withDefaultFonts: false,
      telemetry: false,
      hideClientButton: true,
      showDeveloperTools: 'never',
      mcp: { disabled: true },
      agent: { disabled: true },
    } as never,
  });
  const [page, script] = await Promise.all([inner.inject('/docs/'), inner.inject('/docs/js/scalar.js')]);
  await inner.close();
  return { page: page.body, script: script.rawPayload };
}
