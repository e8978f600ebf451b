import { lookup as systemLookup } from 'node:dns';
import { createRequire } from 'node:module';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { Agent, buildConnector } from 'undici';
import { AppError } from '#errors/app-error.ts';
import type { DeniedNetworks } from './denied-networks.ts';

/** A connection has to stand within this time, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Connections to one server at once. Browsers take 6; files of a folder are fetched side by side. */
const CONNECTIONS_PER_ORIGIN = 16;

/** Response headers may take so many bytes. */
const HEADERS_MAX_BYTES = 32 * 1024;

export interface AgentOptions {
  readonly denied: DeniedNetworks;
  /** How names are resolved; by the operating system unless given. */
  readonly lookup?: LookupFunction;
}

/**
 * Connections for what callers name, none of them to a denied address: names are checked by what they resolve to, in the
 * very resolution that the connection is made with, and each connection by where it leads before anything is sent. A name
 * that resolves otherwise the next time gains nothing, and a redirect is a request like any other.
 */
export function createGuardedAgent({ denied, lookup = systemLookup as LookupFunction }: AgentOptions): Agent {
  const { Agent, buildConnector } = loadUndici();
  const connect = buildConnector({
    timeout: CONNECT_TIMEOUT_MS,
    allowH2: false,
    lookup: guardedLookup(lookup, denied),
  } as buildConnector.BuildOptions);
  return new Agent({
    connections: CONNECTIONS_PER_ORIGIN,
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: HEADERS_MAX_BYTES,
    connect: (options, callback) => {
      const { hostname } = options;
      if (isIP(hostname) !== 0 && denied.denies(hostname)) return callback(denial(hostname), null);
      refuseDenied(connect(options, callback) as unknown as Socket, hostname, denied);
    },
  });
}

/** Only the parts of undici that are used: the whole takes twice the memory. */
function loadUndici(): { Agent: typeof Agent; buildConnector: typeof buildConnector } {
  const load = createRequire(import.meta.url);
  return {
    Agent: load('undici/lib/dispatcher/agent.js') as typeof Agent,
    buildConnector: load('undici/lib/core/connect.js') as typeof buildConnector,
  };
}

/** Resolves names to those of their addresses that are not denied. */
function guardedLookup(lookup: LookupFunction, denied: DeniedNetworks): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, resolved) => {
      if (error !== null) return callback(error, '');
      const addresses = Array.isArray(resolved) ? resolved : [{ address: resolved, family: isIP(resolved) }];
      const allowed = addresses.filter(({ address }) => !denied.denies(address));
      const [first] = allowed;
      if (first === undefined) return callback(denial(hostname), '');
      if (options.all === true) return callback(null, allowed);
      callback(null, first.address, first.family);
    });
  };
}

/** Ends a connection to a denied address as soon as it stands, before a TLS handshake or a request. */
function refuseDenied(socket: Socket, hostname: string, denied: DeniedNetworks): void {
  socket.once('connect', () => {
    if (denied.denies(socket.remoteAddress ?? '')) socket.destroy(denial(hostname));
  });
}

function denial(host: string): AppError {
  return new AppError('HTTP_ADDRESS_DENIED', { host });
}
