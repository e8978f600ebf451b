import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { type Caller, EVERYBODY } from '#jobs/caller.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for routes that need no token even where tokens are set. */
    readonly open?: boolean;
  }
  interface FastifyRequest {
    /** Who sent it; nobody on routes that are open. */
    caller: Caller;
  }
}

/** Sees no jobs. */
const NOBODY: Caller = { name: null, isAdmin: false };

/**
 * Asks for one of the bearer tokens (RFC 6750) on every route that is not marked open, and notes whose it is as
 * `request.caller`. Where no tokens are set, nobody is asked, and everybody is one caller.
 */
export function identifyCallers(app: FastifyInstance, tokens: Config['auth']['tokens']): void {
  const known = tokens.map(({ digest, caller, admin }) => ({
    digest: Buffer.from(digest, 'hex'),
    caller: { name: caller, isAdmin: admin },
  }));
  app.decorateRequest('caller', null as never);
  app.addHook('onRequest', async (request) => {
    request.caller = known.length === 0 ? EVERYBODY : NOBODY;
    if (known.length === 0 || request.routeOptions.config.open === true) return;
    const given = /^Bearer +([\x21-\x7e]+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    const caller = given === undefined ? null : callerOf(given, known);
    if (caller === null) throw new AppError('TOKEN_MISSING', {});
    request.caller = caller;
  });
}

interface KnownToken {
  readonly digest: Buffer;
  readonly caller: Caller;
}

/** Compares with every token, each in constant time: neither which one nor how much of it matched can be measured. */
function callerOf(given: string, known: readonly KnownToken[]): Caller | null {
  const digest = createHash('sha256').update(given).digest();
  return known.reduce<Caller | null>(
    (found, { digest: candidate, caller }) => (timingSafeEqual(digest, candidate) ? caller : found),
    null,
  );
}
