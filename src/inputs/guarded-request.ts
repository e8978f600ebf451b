import { lookup as systemLookup } from 'node:dns';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import type { Agent, buildConnector, Dispatcher } from 'undici';
import { AppError } from '#errors/app-error.ts';
import type { DeniedNetworks } from './denied-networks.ts';
import { shownAddress } from './http/http-errors.ts';
import { ResponseBody } from './http/response-body.ts';

/** Timeout for a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Connections to one server at once. Browsers take 6; files of a folder are fetched side by side. */
const CONNECTIONS_PER_ORIGIN = 16;

/** The longest response headers, in bytes. */
const HEADERS_MAX_BYTES = 32 * 1024;

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
    maxHeaderSize: HEADERS_MAX_BYTES,
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
export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Timeout for a server that sends nothing, or next to nothing, in milliseconds. */
  readonly idleTimeoutMs: number;
}

/** The beginning of an answer. Its body is read, or let go of. */
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
