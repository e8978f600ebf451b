import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent } from 'undici';
import type { Config } from '#config/config.ts';
import { RELEASE } from '#config/release.ts';
import { AppError } from '#errors/app-error.ts';
import { DeniedNetworks } from './denied-networks.ts';
import { type AgentOptions, createGuardedAgent } from './guarded-agent.ts';
import { shownAddress } from './http-address.ts';
import { exchange, type HttpAnswer } from './http-exchange.ts';
import { isBusy, mayPass, requestError, statusError } from './http-problem.ts';
import { type ResponseBody, readBody } from './response-body.ts';

/** Redirects are followed so many times in a row. */
const MAX_REDIRECTS = 5;

/** A request that fails in passing is made again after these pauses, in milliseconds. */
const RETRY_PAUSES_MS = [100, 400, 1600];

/** So much of an answer's body is read for what went wrong. */
const PROBLEM_MAX_BYTES = 16 * 1024;

/** What undici says of a connection that brings bytes nobody asked for; its code is that of every lost connection. */
const EXCESS_MESSAGE = 'bad response';

export interface HttpClientOptions extends AgentOptions {
  readonly idleTimeoutMs: number;
  /** The largest file that is read, in bytes. */
  readonly maxBytes: number;
}

/** An answer with content: 200, 206, or 416 where a range was asked for that the file does not have. */
export interface HttpResponse {
  readonly status: 200 | 206 | 416;
  readonly headers: IncomingHttpHeaders;
  /** Where it came from in the end. */
  readonly url: URL;
  readonly body: ResponseBody;
}

/**
 * Fetches what requests name: by GET alone, since presigned URLs are signed for one method; redirects followed, all of
 * them under the rules of the agent; what fails in passing asked for again.
 */
export class HttpClient {
  readonly options: HttpClientOptions;
  #agent: Agent | null = null;
  #excessCount = 0;

  constructor(options: HttpClientOptions) {
    this.options = options;
  }

  /** Rejects with an AppError for every answer without content. The caller reads the body or cancels it. */
  async get(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpResponse> {
    let target = url;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
      const answer = await this.#answerFrom(target, headers, signal);
      const location = locationOf(answer);
      if (location === undefined) return await this.#withContent(answer, target);
      await beginningOf(answer.body);
      target = redirected(target, location);
    }
    throw new AppError('HTTP_REDIRECTS_ENDLESS', { address: shownAddress(url), limit: MAX_REDIRECTS });
  }

  /** How many connections so far brought more than the answer to a request: a body was longer than its length. */
  get excessCount(): number {
    return this.#excessCount;
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await this.#agent?.destroy();
  }

  async #answerFrom(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpAnswer> {
    for (let attempt = 0; ; attempt += 1) {
      const pauseMs = RETRY_PAUSES_MS[attempt];
      try {
        const answer = await this.#exchange(url, headers, signal);
        if (pauseMs === undefined || !isBusy(answer.status)) return answer;
        await beginningOf(answer.body);
      } catch (error) {
        signal.throwIfAborted();
        const passes = mayPass(error, attempt, RETRY_PAUSES_MS.length);
        if (pauseMs === undefined || !passes) throw requestError(error, url, this.options.idleTimeoutMs);
      }
      await sleep(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  async #exchange(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpAnswer> {
    const common = {
      accept: '*/*',
      'accept-encoding': 'identity',
      'user-agent': `${RELEASE.product}/${RELEASE.version}`,
    };
    const { idleTimeoutMs } = this.options;
    return await exchange(
      this.#connected(),
      { method: 'GET', url, headers: { ...common, ...headers }, idleTimeoutMs },
      signal,
    );
  }

  #connected(): Agent {
    if (this.#agent !== null) return this.#agent;
    this.#agent = createGuardedAgent(this.options);
    this.#agent.on('disconnect', (_origin, _targets, error) => {
      if (error.message === EXCESS_MESSAGE) this.#excessCount += 1;
    });
    return this.#agent;
  }

  async #withContent({ status, headers, body }: HttpAnswer, url: URL): Promise<HttpResponse> {
    if (status !== 200 && status !== 206 && status !== 416) throw statusError(status, url, await beginningOf(body));
    const encoding = encodingOf(headers);
    if (status === 416 || encoding === undefined) return { status, headers, url, body };
    body.cancel();
    throw new AppError('HTTP_ENCODED', { address: shownAddress(url), encoding: encoding.slice(0, 40) });
  }
}

/** The client of a service by its configuration. */
export function createHttpClient({ input_resolvers: { http } }: Config): HttpClient {
  return new HttpClient({
    denied: new DeniedNetworks(http.deny_networks),
    idleTimeoutMs: http.idle_timeout_ms,
    maxBytes: http.max_bytes,
  });
}

/** How a body is packed, for its content or only for its way (RFC 9112 §6.1); undefined where it is not. */
function encodingOf(headers: IncomingHttpHeaders): string | undefined {
  const { 'content-encoding': content = 'identity', 'transfer-encoding': transfer = 'chunked' } = headers;
  if (!/^identity$/i.test(content)) return content;
  return /^chunked$/i.test(transfer) ? undefined : transfer;
}

/** Where an answer redirects to. Headers arrive as bytes read as Latin-1; where these are UTF-8, that is what was meant. */
function locationOf({ status, headers: { location } }: HttpAnswer): string | undefined {
  if (location === undefined || ![301, 302, 303, 307, 308].includes(status)) return undefined;
  const bytes = Buffer.from(location, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : location;
}

/** Where a redirect leads, if it may: never from HTTPS to HTTP, and never to what no request may name. */
function redirected(from: URL, location: string): URL {
  const target = URL.parse(location, from.href);
  const refuse = (problem: string): never => {
    throw new AppError('HTTP_REDIRECT_REFUSED', { address: shownAddress(from), problem });
  };
  if (target === null) return refuse('its address is not well-formed');
  if (target.protocol !== 'https:' && target.protocol !== 'http:') {
    return refuse(`it leads to the scheme "${target.protocol.slice(0, -1)}"`);
  }
  if (target.username !== '' || target.password !== '') return refuse('it leads to an address with credentials');
  if (from.protocol === 'https:' && target.protocol === 'http:') return refuse('it leads from HTTPS to HTTP');
  return target;
}

/** What a page says first, after which its connection can be used again; empty where it cannot be read. */
async function beginningOf(body: ResponseBody): Promise<string> {
  try {
    return (await readBody(body, PROBLEM_MAX_BYTES))?.toString('utf8') ?? '';
  } catch {
    // The status says enough.
    return '';
  }
}
