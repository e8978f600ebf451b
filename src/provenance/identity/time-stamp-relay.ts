import assert from 'node:assert';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { Config } from '#config/config.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';

/** An RFC 3161 time-stamp authority. */
export interface TimeStampAuthority {
  /** May hold credentials: never shown whole. */
  readonly url: string;
  /** How long one time-stamp may take in all. */
  readonly timeoutMs: number;
}

/** The authority that the configuration names; null where it names none. */
export function timeStampAuthorityOf(signing: Config['signing']): TimeStampAuthority | null {
  return signing.tsa_url === undefined ? null : { url: signing.tsa_url, timeoutMs: signing.tsa_timeout_ms };
}

/** What a reply may take up: a token with the certificates of its signer. Those of public authorities have 3 to 7 kB. */
export const MAX_TIME_STAMP_BYTES = 12 * 1024;
/** A query holds a hash, a policy and a nonce. */
const MAX_QUERY_BYTES = 4 * 1024;

const QUERY_TYPE = 'application/timestamp-query';
const REPLY_TYPE = 'application/timestamp-reply';

/** Where the SDK asks for a time-stamp, and what went wrong behind it. */
export interface TimeStampRelay {
  readonly url: string;
  /**
   * Why a signing that failed did so, as the end of "The time-stamp authority …"; null where the authority has nothing
   * to do with it.
   */
  problem(): string | null;
}

/**
 * Gives the SDK an address on this host that passes its query on to the authority. The SDK would wait for a silent
 * authority without end, in a native call that cannot be cancelled; the relay always answers in bounded time, stops
 * with the signal, and knows what went wrong. It lives as long as `use` runs, and takes one secret path.
 */
export async function withTimeStampRelay<T>(
  authority: TimeStampAuthority,
  signal: AbortSignal,
  use: (relay: TimeStampRelay) => Promise<T>,
): Promise<T> {
  let problem: string | null = null;
  const path = `/${randomUUID()}`;
  const server = http.createServer((request, response) => {
    if (request.url !== path || request.method !== 'POST') {
      response.writeHead(404).end();
      return;
    }
    relay(authority, request, response, signal).then(
      () => {
        problem = 'sent an answer that cannot be used';
      },
      (error: unknown) => {
        problem = problemText(error, authority);
        response.writeHead(502).end();
      },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const address = server.address();
    assert(address !== null && typeof address === 'object');
    return await use({ url: `http://127.0.0.1:${address.port}${path}`, problem: () => problem });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** What the authority did wrong, in words for a person. */
class TimeStampProblem extends Error {}

async function relay(
  authority: TimeStampAuthority,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(authority.timeoutMs)]);
  const query = await readBounded(request, MAX_QUERY_BYTES);
  const reply = await ask(authority, query, bounded);
  response.writeHead(200, { 'content-type': REPLY_TYPE, 'content-length': reply.length }).end(reply);
}

/** Posts the query (RFC 3161 §3.4); redirects are not followed. */
async function ask({ url }: TimeStampAuthority, query: Buffer, signal: AbortSignal): Promise<Buffer> {
  const { request } = url.startsWith('https:') ? https : http;
  const headers = { 'content-type': QUERY_TYPE, 'content-length': query.length, accept: REPLY_TYPE };
  const asking = request(url, { method: 'POST', headers, signal });
  // What goes wrong while the answer is read is told by the answer.
  asking.on('error', () => undefined);
  asking.end(query);
  const [reply] = (await once(asking, 'response')) as [IncomingMessage];
  if (reply.statusCode !== 200) {
    reply.destroy();
    throw new TimeStampProblem(`answered with the HTTP status ${reply.statusCode}`);
  }
  return readBounded(reply, MAX_TIME_STAMP_BYTES);
}

async function readBounded(message: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > limitBytes)
      throw new TimeStampProblem(`sent more than the ${limitBytes} bytes that are kept for it`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function problemText(error: unknown, { timeoutMs }: TimeStampAuthority): string {
  if (error instanceof TimeStampProblem) return error.message;
  if (error instanceof Error && error.name === 'AbortError') return `did not answer within ${timeoutMs} ms`;
  if (isSystemError(error)) return `could not be reached: ${problemOf(error)}`;
  return 'could not be reached, or broke off its answer';
}
