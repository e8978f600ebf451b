import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { Agent } from 'undici';
import { retry } from '#concurrency/retry.ts';
import type { Config } from '#config/config.ts';
import { RELEASE } from '#config/release.ts';
import { AppError } from '#errors/app-error.ts';
import { leavesBytes } from '#s3/content-encoding.ts';
import {
  type AgentOptions,
  createGuardedAgent,
  DeniedNetworks,
  exchange,
  type HttpAnswer,
} from '../guarded-request.ts';
import { isBusy, isTransient, requestError, shownAddress, statusError } from './http-errors.ts';
import { type ResponseBody, readBody } from './response-body.ts';

/** Redirects that one request follows. */
const MAX_REDIRECTS = 5;

/** Attempts at a request that meets transient errors, and the pauses between them. */
const MAX_ATTEMPTS = 4;
const BACKOFF = { firstMs: 100, maxMs: 1600, factor: 4 } as const;

/** Bytes of an error response that are read. */
const MAX_PROBLEM_BYTES = 16 * 1024;

/** The message of undici for bytes after the end of a response; its error code is that of any lost connection. */
const EXCESS_MESSAGE = 'bad response';

interface HttpClientOptions extends AgentOptions {
  readonly idleTimeoutMs: number;
  /** The largest file that is read, in bytes. */
  readonly maxBytes: number;
}

/** An answer with content: 200, 206, or 416 where a range was asked for that the file does not have. */
export interface HttpResponse extends HttpAnswer {
  readonly status: 200 | 206 | 416;
  /** The address after all redirects. */
  readonly url: URL;
}

/**
 * Fetches what requests name: by GET alone, since presigned URLs are signed for one method; redirects followed, all of
 * them under the rules of the agent; what fails in passing asked for again.
 */
export class HttpClient {
  readonly options: HttpClientOptions;
  #agent: Promise<Agent> | null = null;
  #excessCount = 0;

  constructor(options: HttpClientOptions) {
    this.options = options;
  }

  /**
   * Sends a GET request, follows redirects and retries transient errors. The caller reads or cancels the body. Throws
   * an AppError for every response without content.
   */
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

  /** Connections on which a body was longer than its stated length. */
  get excessCount(): number {
    return this.#excessCount;
  }

  /** Throws `HTTP_TOO_LARGE` for a file that is larger than any that is read. */
  requireSize(url: URL, sizeBytes: number): void {
    const { maxBytes: limitBytes } = this.options;
    if (sizeBytes > limitBytes) throw new AppError('HTTP_TOO_LARGE', { address: shownAddress(url), limitBytes });
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await (await this.#agent)?.destroy();
  }

  async #answerFrom(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpAnswer> {
    const options = { backoff: BACKOFF, maxAttempts: MAX_ATTEMPTS, isTransient: isTransientAttempt, signal };
    try {
      return await retry(async (attempt) => {
        const answer = await this.#exchange(url, headers, signal);
        if (attempt === MAX_ATTEMPTS || !isBusy(answer.status)) return answer;
        await beginningOf(answer.body);
        throw new BusyServerError(`the server answered ${answer.status}`);
      }, options);
    } catch (error) {
      signal.throwIfAborted();
      throw requestError(error, url, this.options.idleTimeoutMs);
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
      await this.#connected(),
      { method: 'GET', url, headers: { ...common, ...headers }, idleTimeoutMs },
      signal,
    );
  }

  #connected(): Promise<Agent> {
    this.#agent ??= createGuardedAgent(this.options).then((agent) =>
      agent.on('disconnect', (_origin, _targets, error) => {
        if (error.message === EXCESS_MESSAGE) this.#excessCount += 1;
      }),
    );
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

/** An answer whose status says that the same request may succeed later. */
class BusyServerError extends Error {}

function isTransientAttempt(error: unknown, attempt: number): boolean {
  return error instanceof BusyServerError || isTransient(error, attempt - 1, MAX_ATTEMPTS);
}

/** Creates the client that the configuration describes. */
export function createHttpClient({ input_resolvers: { http } }: Config): HttpClient {
  return new HttpClient({
    denied: new DeniedNetworks(http.deny_networks),
    idleTimeoutMs: http.idle_timeout_ms,
    maxBytes: http.max_bytes,
  });
}

/** Returns the content or transfer encoding of a body (RFC 9112 §6.1); undefined for none. */
function encodingOf(headers: IncomingHttpHeaders): string | undefined {
  const { 'content-encoding': content = '', 'transfer-encoding': transfer = 'chunked' } = headers;
  if (!leavesBytes(content)) return content;
  return /^chunked$/i.test(transfer) ? undefined : transfer;
}

/** Returns the target of a redirect. Node decodes headers as Latin-1; valid UTF-8 is decoded again as such. */
function locationOf({ status, headers: { location } }: HttpAnswer): string | undefined {
  if (location === undefined || ![301, 302, 303, 307, 308].includes(status)) return undefined;
  const bytes = Buffer.from(location, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : location;
}

/**
 * Resolves a redirect. Throws `HTTP_REDIRECT_REFUSED` for one from HTTPS to HTTP, or to an address that requests
 * may not name.
 */
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

/** Returns the start of a body, which frees the connection for the next request; empty when it cannot be read. */
async function beginningOf(body: ResponseBody): Promise<string> {
  try {
    return (await readBody(body, MAX_PROBLEM_BYTES))?.toString('utf8') ?? '';
  } catch {
    // The status says enough.
    return '';
  }
}
