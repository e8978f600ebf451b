import { createHash } from 'node:crypto';
import Fastify from 'fastify';

/** The page of the interactive reference and its script, as they are sent. */
export interface ApiReference {
  readonly page: string;
  /** The page's Content-Security-Policy. */
  readonly policy: string;
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
  return { page: page.body, policy: policyOf(page.body), script: script.rawPayload };
}

/** Lets the page run its own scripts, talk to this service, and nothing else; no other page may frame it. */
function policyOf(page: string): string {
  const inline = [...page.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)];
  const hashes = inline.map(([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`);
  return [
    "default-src 'none'",
    ["script-src 'self'", ...hashes].join(' '),
    "style-src 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
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
