import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { connect } from 'node:net';
import { isSystemError, problemOf } from '#errors/system-problem.ts';

/** A request to an authority of certificates or time-stamps. */
export interface BoundedRequest {
  /** May hold credentials: never shown whole. */
  readonly url: string;
  readonly body: Buffer;
  readonly contentType: string;
  /** The media type that is asked for. */
  readonly accept: string;
  /** Limits the answer. */
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** An answer that nobody has looked at. */
export interface BoundedAnswer {
  readonly bytes: Buffer;
  readonly contentType: string;
}

/** A problem of the authority, as the end of "The authority …". */
export class AuthorityProblem extends Error {}

/** Posts a request and returns the answer with the status 200. Redirects are not followed. Throws what `authorityProblem` describes. */
export async function postBounded({ timeoutMs, ...request }: BoundedRequest): Promise<BoundedAnswer> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    return await post(request, AbortSignal.any([request.signal, late]));
  } catch (error) {
    // An answer that stops midway ends in an error that does not say so.
    throw late.aborted ? new AuthorityProblem(`did not answer within ${timeoutMs} ms`) : error;
  }
}

/**
 * Connects to an authority without asking it for anything. Resolves with the problem, as the end of "The authority …"; with null where
 * it takes connections.
 */
export async function connectionProblemOf(url: string, timeoutMs: number): Promise<string | null> {
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const socket = connect({ host, port: Number(port || (protocol === 'https:' ? 443 : 80)) });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(timeoutMs) });
    return null;
  } catch (error) {
    return authorityProblem(error);
  } finally {
    socket.destroy();
  }
}

async function post(
  { url, body, contentType, accept, maxBytes }: Omit<BoundedRequest, 'timeoutMs'>,
  signal: AbortSignal,
): Promise<BoundedAnswer> {
  const { request } = url.startsWith('https:') ? https : http;
  const headers = { 'content-type': contentType, 'content-length': body.length, accept };
  const asking = request(url, { method: 'POST', headers, signal });
  // Errors while the answer is read are reported by the answer.
  asking.on('error', () => undefined);
  asking.end(body);
  const [reply] = (await once(asking, 'response')) as [IncomingMessage];
  if (reply.statusCode !== 200) {
    reply.destroy();
    throw new AuthorityProblem(`answered with the HTTP status ${reply.statusCode}`);
  }
  return { bytes: await readBounded(reply, maxBytes), contentType: reply.headers['content-type'] ?? '' };
}

/** Reads the body of a message. Throws where it is over the limit. */
export async function readBounded(message: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > limitBytes) throw new AuthorityProblem(`sent more than ${limitBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Describes an error of `postBounded`, as the end of "The authority …". */
export function authorityProblem(error: unknown): string {
  if (error instanceof AuthorityProblem) return error.message;
  if (isSystemError(error)) return `could not be reached: ${problemOf(error)}`;
  return 'could not be reached, or broke off its answer';
}
