import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { type Caller, EVERYBODY } from '#jobs/caller.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for routes that need no token even where tokens are set. */
    readonly open?: boolean;
  }
  interface FastifyRequest {
    /** The caller that the token stands for; `NOBODY` without a known one on routes that are open. */
    caller: Caller;
    /** Returns the caller that a token stands for. Throws `TOKEN_MISSING` or `TOKEN_UNKNOWN`. */
    identify(token: string | undefined): Caller;
  }
}

/** Holds the token of a browser that has logged in. */
export const SESSION_COOKIE = 'attestream_token';

/** Sees no jobs. */
const NOBODY: Caller = { name: null, isAdmin: false };

/**
 * Asks for one of the tokens on every route that is not marked open, and notes whose it is as `request.caller`: in the
 * `Authorization` header (RFC 6750), or in the cookie of a browser that has logged in. Browsers send the cookie with
 * requests of any page of this site, so with it, what changes something must come from a page of this address. If no
 * tokens are set, nobody is asked, and everybody is one caller. `tokens` returns those in force.
 */
export async function identifyCallers(app: FastifyInstance, tokens: () => Config['auth']['tokens']): Promise<void> {
  await app.register(cookie);
  const callerIfKnown = (request: FastifyRequest): Caller => {
    const known = tokens();
    if (known.length === 0) return EVERYBODY;
    const token = request.method === 'GET' ? givenToken(request) : undefined;
    return (token === undefined ? null : callerOf(token, known)) ?? NOBODY;
  };
  app.decorateRequest('caller', null as never);
  app.decorateRequest('identify', (token) => {
    const known = tokens();
    if (known.length === 0) return EVERYBODY;
    if (token === undefined) throw new AppError('TOKEN_MISSING', {});
    const caller = callerOf(token, known);
    if (caller === null) throw new AppError('TOKEN_UNKNOWN', {});
    return caller;
  });
  app.addHook('onRequest', async (request) => {
    const isOpen = request.routeOptions.config.open === true;
    request.caller = isOpen ? callerIfKnown(request) : request.identify(givenToken(request));
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

/** Compares with every token, each in constant time: neither which one nor how much of it matched can be measured. */
function callerOf(given: string, known: Config['auth']['tokens']): Caller | null {
  const digest = createHash('sha256').update(given).digest();
  return known.reduce<Caller | null>(
    (found, { digest: candidate, caller: name, admin: isAdmin }) =>
      timingSafeEqual(digest, Buffer.from(candidate, 'hex')) ? { name, isAdmin } : found,
    null,
  );
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for routes that an open service answers under any host name: health checks. */
    readonly anyHost?: boolean;
  }
}

/** A host and its port, as they stand in a `Host` header (RFC 9110 §7.2); brackets mark IPv6. */
const AUTHORITY = /^(\[[^[\]]*\]|[^[\]:]*)(?::(\d{0,5}))?$/;

/** A name that is one label, as in a container network or a hosts file. Internationalized ones arrive as `xn--…`. */
const SINGLE_LABEL = /^[a-z0-9_-]{1,63}$/;

/** The authority of a request target in absolute form (RFC 9112 §3.2.2). */
const ABSOLUTE_TARGET = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;

const DEFAULT_PORTS: ReadonlyMap<string, string> = new Map(Object.entries({ 'http:': '80', 'https:': '443' }));

/**
 * Keeps web pages from driving a service without tokens. Refuses a `Host` that may be a foreign page's own name rebound
 * to this address: one that is neither an IP address, nor a name without a dot, nor one of `allowedHosts`. Refuses an
 * `Origin` that differs from the `Host`. Browsers send both, and no page can change them. Headers of proxies, such as
 * `X-Forwarded-Host`, count for nothing. To be added before all that reads a request.
 */
export function guardHosts(app: FastifyInstance, allowedHosts: readonly string[], isOpen = () => true): void {
  const allowed = new Set(allowedHosts.map(canonicalName));
  app.addHook('onRequest', async ({ raw, routeOptions }) => {
    if (!isOpen() || routeOptions.config.anyHost === true) return;
    const host = authorityOf(raw);
    if (host === null || !(isAddress(host.name) || SINGLE_LABEL.test(host.name) || allowed.has(host.name))) {
      throw new AppError('HOST_FORBIDDEN', {});
    }
    const { origin } = raw.headers;
    if (origin !== undefined && !isSameOrigin(origin, host)) throw new AppError('ORIGIN_FORBIDDEN', {});
  });
}

/** Tells whether a browser says that a request comes from a page of the address that it is sent to. */
function isFromOwnPage(request: IncomingMessage): boolean {
  const host = authorityOf(request);
  const { origin } = request.headers;
  return host !== null && origin !== undefined && isSameOrigin(origin, host);
}

interface Authority {
  /** Lower case, without a trailing dot; an IPv6 address in brackets. */
  readonly name: string;
  /** Undefined where it is the default of the scheme. */
  readonly port: string | undefined;
}

/** Returns what a request is addressed to; null where it does not say so once and in one way. */
function authorityOf({ headersDistinct, url = '' }: IncomingMessage): Authority | null {
  const [host, ...others] = headersDistinct['host'] ?? [];
  if (host === undefined || others.length > 0) return null;
  const authority = parseAuthority(host);
  const target = ABSOLUTE_TARGET.exec(url)?.[1];
  if (target === undefined || authority === null) return authority;
  return parseAuthority(target)?.name === authority.name ? authority : null;
}

function parseAuthority(text: string): Authority | null {
  const [, name, port] = AUTHORITY.exec(text) ?? [];
  return name === undefined ? null : { name: withoutFinalDot(name.toLowerCase()), port: port || undefined };
}

/** Accepts IPv6 with a zone (RFC 6874) too: no name server is asked for it. */
function isAddress(name: string): boolean {
  return isIPv4(name) || (name.startsWith('[') && isIPv6(name.slice(1, -1)));
}

/** Compares as browsers write origins (RFC 6454 §6.2). The scheme may be that of a proxy before the service. */
function isSameOrigin(origin: string, host: Authority): boolean {
  const [, scheme = '', authority = ''] = /^(https?:)\/\/([^/?#@]+)$/i.exec(origin) ?? [];
  const page = parseAuthority(authority);
  const defaultPort = DEFAULT_PORTS.get(scheme.toLowerCase());
  return (
    page !== null &&
    defaultPort !== undefined &&
    page.name === host.name &&
    (page.port ?? defaultPort) === (host.port ?? defaultPort)
  );
}

/** Returns a configured name as browsers send it: in ASCII (IDNA), lower case. */
function canonicalName(name: string): string {
  return withoutFinalDot(domainToASCII(name));
}

/** Removes the final dot of a name, which is the same name without it. An address with one is no address. */
function withoutFinalDot(name: string): string {
  return name.endsWith('.') && !isIPv4(name.slice(0, -1)) ? name.slice(0, -1) : name;
}
