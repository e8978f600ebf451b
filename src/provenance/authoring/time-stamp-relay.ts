import assert from 'node:assert';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { callRecorder } from '#telemetry/run-report.ts';
import { authorityProblem, type BoundedAnswer, postBounded, readBounded } from '../bounded-post.ts';

/** An RFC 3161 time-stamp authority. */
interface TimeStampAuthority {
  /** May hold credentials: never shown whole. */
  readonly url: string;
  /** Limits the time of one time-stamp. */
  readonly timeoutMs: number;
}

/** Limits an answer: a token with the certificates of its signer. Those of public authorities have 3 to 7 kB. */
export const MAX_TIME_STAMP_BYTES = 32 * 1024;
/** Limits the media type of an answer where a problem quotes it. */
const MAX_QUOTED_CHARACTERS = 60;
/** Limits a query, which holds a hash, a policy and a nonce. */
const MAX_QUERY_BYTES = 4 * 1024;

const QUERY_TYPE = 'application/timestamp-query';
const REPLY_TYPE = 'application/timestamp-reply';

/** A local address from which the SDK gets a time-stamp. */
interface TimeStampRelay {
  readonly url: string;
  outcome(): TimeStampOutcome;
}

/** The outcome of a query. */
interface TimeStampOutcome {
  /** The problem where the SDK got no time-stamp that it can use, as the end of "The authority …"; null where it did not ask. */
  readonly problem: string | null;
  /** The size of the answer; 0 where there was none. */
  readonly answerBytes: number;
}

/**
 * Runs `use` with an address on this host that forwards the SDK's query to the authority, and its answer unless that has more
 * than `maxBytes`. The SDK would wait forever for a
 * silent authority, in a native call that cannot be cancelled; the relay always answers in bounded time, stops with the
 * signal, and reports the problem. It listens while `use` runs, on one secret path.
 */
export async function withTimeStampRelay<T>(
  authority: TimeStampAuthority,
  maxBytes: number,
  signal: AbortSignal,
  use: (relay: TimeStampRelay) => Promise<T>,
): Promise<T> {
  let outcome: TimeStampOutcome = { problem: null, answerBytes: 0 };
  const path = `/${randomUUID()}`;
  const server = http.createServer((request, response) => {
    if (request.url !== path || request.method !== 'POST') {
      response.writeHead(404).end();
      return;
    }
    callRecorder
      .measure('time-stamp', () => ask(authority, request, signal))
      .then(
        (answer) => {
          outcome = { problem: `sent ${describe(answer)}`, answerBytes: answer.bytes.length };
          if (answer.bytes.length > maxBytes) response.writeHead(502).end();
          else response.writeHead(200, { 'content-type': REPLY_TYPE }).end(answer.bytes);
        },
        (error: unknown) => {
          outcome = { problem: authorityProblem(error), answerBytes: 0 };
          response.writeHead(502).end();
        },
      );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const address = server.address();
    assert(address !== null && typeof address === 'object');
    return await use({ url: `http://127.0.0.1:${address.port}${path}`, outcome: () => outcome });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** Says what an answer is that the SDK refuses: no time-stamp, or one that does not fit the hash and the nonce of the query. */
function describe({ contentType }: BoundedAnswer): string {
  if (contentType.startsWith(REPLY_TYPE)) return 'an answer that is no valid time-stamp of this signature';
  const quoted = contentType.slice(0, MAX_QUOTED_CHARACTERS).replace(/[^ -~]/g, '?');
  return `${quoted === '' ? 'an answer without a media type' : quoted} instead of a time-stamp`;
}

/** Posts the query (RFC 3161 §3.4). */
async function ask(
  authority: TimeStampAuthority,
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<BoundedAnswer> {
  const body = await readBounded(request, MAX_QUERY_BYTES);
  const types = { contentType: QUERY_TYPE, accept: REPLY_TYPE };
  return await postBounded({ ...authority, ...types, body, maxBytes: MAX_TIME_STAMP_BYTES, signal });
}
