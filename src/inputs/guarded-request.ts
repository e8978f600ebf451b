import { lookup as systemLookup } from 'node:dns';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Agent, buildConnector, Dispatcher } from 'undici';
import { LINK_LOCAL_AND_METADATA } from '#config/addresses.ts';
import { AppError } from '#errors/app-error.ts';
import { shownAddress } from './http/http-errors.ts';
import { ResponseBody } from './http/response-body.ts';

/** Timeout for a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Connections to one server at once. Browsers take 6; files of a folder are fetched side by side. */
const CONNECTIONS_PER_ORIGIN = 16;

/** The longest response headers, in bytes. */
const MAX_HEADERS_BYTES = 32 * 1024;

export interface AgentOptions {
  readonly denied: DeniedNetworks;
  /** Resolves names; the operating system's resolver by default. */
  readonly lookup?: LookupFunction;
}

/**
 * Creates a pool of connections to addresses that callers name, none of them denied. A name is checked in the same
 * resolution that its connection uses, so DNS rebinding gains nothing, and redirects are requests like any other. Loads
 * undici, which takes 13 MB, only now.
 */
export async function createGuardedAgent({
  denied,
  lookup = systemLookup as LookupFunction,
}: AgentOptions): Promise<Agent> {
  const { Agent, buildConnector } = await import('undici');
  const connect = buildConnector({
    timeout: CONNECT_TIMEOUT_MS,
    allowH2: false,
    lookup: guardedLookup(lookup, denied),
  } as buildConnector.BuildOptions);
  return new Agent({
    connections: CONNECTIONS_PER_ORIGIN,
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: MAX_HEADERS_BYTES,
    connect: (options, callback) => {
      const { hostname } = options;
      if (isIP(hostname) !== 0 && denied.denies(hostname)) return callback(denial(hostname), null);
      connect(options, (...connected) => callback(...refusedIfDenied(connected, hostname, denied)));
    },
  });
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

/** Closes a connection that leads to a denied address before a request is sent over it, however it came about. */
function refusedIfDenied(
  connected: buildConnector.CallbackArgs,
  hostname: string,
  denied: DeniedNetworks,
): buildConnector.CallbackArgs {
  const [error, socket] = connected;
  if (error !== null || !denied.denies(socket.remoteAddress ?? '')) return connected;
  socket.destroy();
  return [denial(hostname), null];
}

function denial(host: string): AppError {
  return new AppError('HTTP_ADDRESS_DENIED', { host });
}

/** Interim responses (1xx) to one request. Each restarts the timeout, so their number is bounded. */
const MAX_EARLY_ANSWERS = 16;

/** One request to a server, which is not redirected. */
interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Timeout for a server that sends nothing, or next to nothing, in milliseconds. */
  readonly idleTimeoutMs: number;
}

/** The beginning of an answer. Its body is read, or released. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: ResponseBody;
}

/** Sends a request and resolves when the headers of the answer are there. Rejects with what undici or the guard throws. */
export function exchange(agent: Agent, request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
  const { url, method, headers, body = null, idleTimeoutMs } = request;
  const handler = new AnswerHandler(request, signal);
  agent.dispatch(
    {
      origin: url.origin,
      path: url.pathname + url.search,
      method,
      headers,
      body,
      headersTimeout: idleTimeoutMs,
      bodyTimeout: 0, // The body has a watch of its own.
    },
    handler,
  );
  return handler.answer;
}

/** Turns what undici tells of one request into an answer. */
class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #answer = Promise.withResolvers<HttpAnswer>();
  readonly #request: HttpRequest;
  readonly #signal: AbortSignal;
  #controller: Dispatcher.DispatchController | null = null;
  #body: ResponseBody | null = null;
  #earlyAnswers = 0;
  #ended = false;

  constructor(request: HttpRequest, signal: AbortSignal) {
    this.#request = request;
    this.#signal = signal;
    if (signal.aborted) this.#abort();
    else signal.addEventListener('abort', this.#abort, { once: true });
  }

  get answer(): Promise<HttpAnswer> {
    return this.#answer.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended) controller.abort(new Error('nobody waits for the answer'));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return this.#countEarlyAnswer(controller);
    const body = new ResponseBody(
      {
        pause: () => controller.pause(),
        resume: () => controller.resume(),
        abort: (reason) => controller.abort(reason),
      },
      this.#request.idleTimeoutMs,
    );
    this.#body = body;
    this.#answer.resolve({ status, headers, body });
  }

  #countEarlyAnswer(controller: Dispatcher.DispatchController): void {
    this.#earlyAnswers += 1;
    if (this.#earlyAnswers <= MAX_EARLY_ANSWERS) return;
    const problem = `it is preceded by more than ${MAX_EARLY_ANSWERS} early answers`;
    controller.abort(new AppError('HTTP_ANSWER_INVALID', { address: shownAddress(this.#request.url), problem }));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#end();
    this.#body?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end();
    this.#answer.reject(error);
    this.#body?.fail(error);
  }

  readonly #abort = (): void => {
    this.#end();
    const reason = this.#signal.reason instanceof Error ? this.#signal.reason : new Error('the request was aborted');
    this.#answer.reject(this.#signal.reason);
    this.#body?.fail(this.#signal.reason);
    this.#controller?.abort(reason);
  };

  #end(): void {
    this.#ended = true;
    this.#signal.removeEventListener('abort', this.#abort);
  }
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = [Address, number];

/** IPv6 forms that hold an IPv4 address: the prefix, and at which of the 16 bytes the address begins. */
const FORMS_WITH_IPV4: readonly { readonly network: Network; readonly at: number }[] = [
  { network: ipaddr.parseCIDR('::ffff:0:0/96'), at: 12 }, // Mapped (RFC 4291 §2.5.5.2).
  { network: ipaddr.parseCIDR('::/96'), at: 12 }, // Compatible, deprecated (RFC 4291 §2.5.5.1).
  { network: ipaddr.parseCIDR('::ffff:0:0:0/96'), at: 12 }, // Translated (RFC 2765 §2.1).
  { network: ipaddr.parseCIDR('64:ff9b::/96'), at: 12 }, // NAT64 (RFC 6052).
  { network: ipaddr.parseCIDR('64:ff9b:1::/48'), at: 12 }, // NAT64 inside a network (RFC 8215), as /96.
  { network: ipaddr.parseCIDR('2002::/16'), at: 2 }, // 6to4 (RFC 3056).
];

/** Teredo (RFC 4380): the address of the client with all bits turned round. */
const TEREDO = ipaddr.parseCIDR('2001::/32');

/** ISATAP (RFC 5214): an interface identifier that ends in the IPv4 address, behind either of these bytes. */
const ISATAP_MARKS = ['00005efe', '02005efe'];

/** Addresses that this service never connects to for a caller: link-local ones, cloud metadata, and what is configured. */
export class DeniedNetworks {
  readonly #networks: readonly Network[];

  constructor(networks: readonly string[]) {
    this.#networks = [...LINK_LOCAL_AND_METADATA, ...networks].map(parseNetwork);
  }

  /** Tells whether an address is denied, in any notation and any form of IPv6 that carries it. Malformed addresses are denied. */
  denies(text: string): boolean {
    const bare = text.replace(/%.*$/s, '');
    if (isIP(bare) === 0) return true;
    return standsFor(ipaddr.parse(bare)).some((address) =>
      this.#networks.some((network) => isInside(address, network)),
    );
  }
}

function parseNetwork(text: string): Network {
  return text.includes('/') ? ipaddr.parseCIDR(text) : hostNetwork(ipaddr.parse(text));
}

function hostNetwork(address: Address): Network {
  return [address, address.toByteArray().length * 8];
}

function isInside(address: Address, [network, prefixLength]: Network): boolean {
  return address.kind() === network.kind() && address.match(network as never, prefixLength);
}

/**
 * Returns an address, the IPv4 address in it, and where a connection to it ends up: an unspecified one
 * reaches this host.
 */
function standsFor(address: Address): Address[] {
  const inner = innerAddress(address);
  const forms = inner === null ? [address] : [address, inner];
  return forms.flatMap((form) => (form.range() === 'unspecified' ? [form, loopbackLike(form)] : [form]));
}

function loopbackLike(address: Address): Address {
  return ipaddr.parse(address.kind() === 'ipv4' ? '127.0.0.1' : '::1');
}

function innerAddress(address: Address): Address | null {
  if (address.kind() === 'ipv4') return null;
  const bytes = address.toByteArray();
  const form = FORMS_WITH_IPV4.find(({ network }) => isInside(address, network));
  if (form !== undefined) return ipaddr.fromByteArray(bytes.slice(form.at, form.at + 4));
  if (isInside(address, TEREDO)) return ipaddr.fromByteArray(bytes.slice(12).map((byte) => byte ^ 0xff));
  const mark = Buffer.from(bytes.slice(8, 12)).toString('hex');
  return ISATAP_MARKS.includes(mark) ? ipaddr.fromByteArray(bytes.slice(12)) : null;
}
