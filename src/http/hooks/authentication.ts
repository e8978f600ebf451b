import { createHash, timingSafeEqual } from 'node:crypto';
import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { type Caller, EVERYBODY } from '#jobs/caller.ts';
import { isFromOwnPage } from './host-guard.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for routes that need no token even where tokens are set. */
    readonly open?: boolean;
  }
  interface FastifyRequest {
    /** The caller that the token stands for; `NOBODY` on routes that are open. */
    caller: Caller;
    /** Returns the caller that a token stands for. Throws `TOKEN_MISSING` for one that is not known. */
    identify(token: string | undefined): Caller;
  }
}

/** Holds the token of a browser that has logged in. */
export const SESSION_COOKIE = 'attestream_token';

/** Sees no jobs. */
const NOBODY: Caller = { name: null, isAdmin: false };

/**
 * Asks for one of the tokens on every route that is not marked open, and notes whose it is as `request.caller`: in the
 * `Authorization` header (RFC 6750), or in the cookie of a browser that has logged in. Browsers send the cookie with requests of
 * any page of this site, so with it, what changes something must come from a page of this address. Where no tokens
 * are set, nobody is asked, and everybody is one caller.
 */
export async function identifyCallers(app: FastifyInstance, tokens: Config['auth']['tokens']): Promise<void> {
  const known = tokens.map(({ digest, caller, admin }) => ({
    digest: Buffer.from(digest, 'hex'),
    caller: { name: caller, isAdmin: admin },
  }));
  await app.register(cookie);
  app.decorateRequest('caller', null as never);
  app.decorateRequest('identify', (token) => {
    if (known.length === 0) return EVERYBODY;
    const caller = token === undefined ? null : callerOf(token, known);
    if (caller === null) throw new AppError('TOKEN_MISSING', {});
    return caller;
  });
  app.addHook('onRequest', async (request) => {
    const isOpen = request.routeOptions.config.open === true;
    request.caller = isOpen && known.length > 0 ? NOBODY : request.identify(givenToken(request));
  });
}

function givenToken(request: FastifyRequest): string | undefined {
  const { authorization } = request.headers;
  if (authorization !== undefined) return /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1];
  const token = request.cookies[SESSION_COOKIE];
  const isSafe = request.method === 'GET' || request.method === 'HEAD';
  if (token !== undefined && !isSafe && !isFromOwnPage(request.raw)) throw new AppError('LOGIN_FORGED', {});
  return token;
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
