import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { AppError } from '#errors/app-error.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for routes that need no token even where tokens are set. */
    readonly open?: boolean;
  }
}

/** Asks for one of the bearer tokens (RFC 6750) on every route that is not marked open; no tokens, no question. */
export function requireToken(app: FastifyInstance, tokens: readonly string[]): void {
  if (tokens.length === 0) return;
  const known = tokens.map(tokenDigest);
  app.addHook('onRequest', async (request) => {
    if (request.routeOptions.config.open === true) return;
    const given = /^Bearer +([\x21-\x7e]+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    if (given === undefined || !isKnown(sha256(given), known)) throw new AppError('TOKEN_MISSING', {});
  });
}

/** A configured token, given as it is or as `sha256:<hex>`, as its digest. */
function tokenDigest(token: string): Buffer {
  return token.startsWith('sha256:') ? Buffer.from(token.slice('sha256:'.length), 'hex') : sha256(token);
}

/** Compares with every token, each in constant time: neither which one nor how much of it matched can be measured. */
function isKnown(digest: Buffer, known: readonly Buffer[]): boolean {
  return known.reduce((found, candidate) => timingSafeEqual(digest, candidate) || found, false);
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
