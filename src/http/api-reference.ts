import Fastify from 'fastify';

/** The page of the interactive reference and its script, as they are sent. */
export interface ApiReference {
  readonly page: string;
  readonly script: Buffer;
}

/**
 * Takes the page and the script from the reference's own plugin, run in a server that never listens. The package takes
 * 28 MB of memory once loaded, so this is for the moment when somebody first looks.
 */
export async function loadApiReference(): Promise<ApiReference> {
  const { default: scalar } = await import('@scalar/fastify-api-reference');
  const inner = Fastify();
  await inner.register(scalar, {
    routePrefix: '/docs',
    configuration: {
      url: '/openapi.json',
      cdn: '/docs/scalar.js',
      pageTitle: 'Attestream API',
      ...NOTHING_FROM_OUTSIDE,
    },
  });
  const [page, script] = await Promise.all([inner.inject('/docs/'), inner.inject('/docs/js/scalar.js')]);
  await inner.close();
  return { page: page.body, script: script.rawPayload };
}

/** Turns off what would load from, or send to, other servers than this one. */
const NOTHING_FROM_OUTSIDE = {
  favicon: 'data:,',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  mcp: { disabled: true },
  agent: { disabled: true },
} as const;
