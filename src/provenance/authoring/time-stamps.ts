import assert from 'node:assert';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { callRecorder } from '#telemetry/run-report.ts';
import {
  authorityProblem,
  type BoundedAnswer,
  type BoundedRequest,
  postBounded,
  readBounded,
} from '../bounded-post.ts';

/** The RFC 3161 time-stamp authorities that signatures get their time from. */
export interface TimeStampSettings {
  /** Tried in order, at least one. May hold credentials: never shown whole. */
  readonly urls: readonly string[];
  /** Limits the time of each authority for one time-stamp. */
  readonly timeoutMs: number;
  /** False where a manifest without a time-stamp is better than none. */
  readonly isRequired: boolean;
}

/** The part of a signature that is kept for a time-stamp. */
export interface TimeStampSpace {
  readonly sizeBytes: number;
  /** The reasons why the signature gets no time-stamp; empty where it gets one, or needs none. */
  readonly problems: readonly string[];
}

/** The space of a signature without a time-stamp. */
export const NO_TIME_STAMP: TimeStampSpace = { sizeBytes: 0, problems: [] };

/** A signed manifest store (JUMBF), with warnings about its signature. */
export interface SignedManifest {
  readonly manifest: Buffer;
  readonly warnings: readonly Warning[];
}

/** Signs a manifest, for which the SDK gets a time-stamp from the address. */
type StampedSigning = (tsaUrl: string) => Promise<Buffer>;

/** The size of the structure around a time-stamp in the COSE header `sigTst2` (C2PA 2.2 §10.3.2.5). */
const OVERHEAD_BYTES = 32;
/**
 * Covers what differs between the answers of one authority: the length of the serial number, of fractions of a second, of an
 * ECDSA signature, and of the certificates of another of its machines.
 */
const MARGIN_BYTES = 256;

/** Gets time-stamps from the first authority that gives one. Knows the size of the last answer of each, in this process. */
export class TimeStamps {
  readonly #settings: TimeStampSettings;
  readonly #answerBytes = new Map<string, number>();

  constructor(settings: TimeStampSettings) {
    this.#settings = settings;
  }

  /**
   * Returns the space for a time-stamp. If no authority has answered yet, `probe` signs something to learn the size.
   * Throws `TIME_STAMP_UNAVAILABLE` where none answers and a time-stamp is required.
   */
  async reserve(probe: StampedSigning, signal: AbortSignal): Promise<TimeStampSpace> {
    if (this.#answerBytes.size === 0) {
      const { problems } = await this.#firstOf(probe, MAX_TIME_STAMP_BYTES, signal);
      if (this.#answerBytes.size === 0) return { sizeBytes: 0, problems: this.#requireNone(problems) };
    }
    return { sizeBytes: Math.max(...this.#answerBytes.values()) + MARGIN_BYTES + OVERHEAD_BYTES, problems: [] };
  }

  /**
   * Signs with a time-stamp in the space that was reserved; with a warning without one, where it is not required. Throws
   * `TIME_STAMP_UNAVAILABLE`, or `TIME_STAMP_LARGER` where the space is too small: the next one that is reserved is not.
   */
  async sign(
    signing: (tsaUrl: string | null) => Promise<Buffer>,
    space: TimeStampSpace,
    signal: AbortSignal,
  ): Promise<SignedManifest> {
    let { problems } = space;
    if (problems.length === 0) {
      const stamped = await this.#firstOf(signing, space.sizeBytes - OVERHEAD_BYTES, signal);
      if (stamped.manifest !== null) return { manifest: stamped.manifest, warnings: [] };
      problems = this.#requireNone(stamped.problems);
    }
    return { manifest: await signing(null), warnings: [warning('TIME_STAMP_MISSING', { problems })] };
  }

  async #firstOf(
    signing: StampedSigning,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<{ readonly manifest: Buffer | null; readonly problems: readonly string[] }> {
    const problems: string[] = [];
    for (const url of this.#settings.urls) {
      const manifest = await this.#askOne(url, signing, maxBytes, signal);
      if (typeof manifest !== 'string') return { manifest, problems };
      problems.push(`${new URL(url).host} ${manifest}`);
    }
    return { manifest: null, problems };
  }

  /** Signs with a time-stamp of one authority. Returns the problem where it gives none. Throws `TIME_STAMP_LARGER`. */
  async #askOne(url: string, signing: StampedSigning, maxBytes: number, signal: AbortSignal): Promise<Buffer | string> {
    const authority = { url, timeoutMs: this.#settings.timeoutMs };
    return withTimeStampRelay(authority, maxBytes, signal, async (relay) => {
      try {
        const manifest = await signing(relay.url);
        this.#answerBytes.set(url, relay.outcome().answerBytes);
        return manifest;
      } catch (cause) {
        signal.throwIfAborted();
        const { problem, answerBytes } = relay.outcome();
        // The SDK failed for a reason of its own.
        if (problem === null) throw cause;
        if (answerBytes <= maxBytes) {
          this.#answerBytes.delete(url);
          return problem;
        }
        this.#answerBytes.set(url, answerBytes);
        throw new AppError('TIME_STAMP_LARGER', { host: new URL(url).host, answerBytes, maxBytes }, { cause });
      }
    });
  }

  #requireNone(problems: readonly string[]): readonly string[] {
    if (this.#settings.isRequired) throw new AppError('TIME_STAMP_UNAVAILABLE', { problems });
    return problems;
  }
}

/** An RFC 3161 time-stamp authority, and the limit of the time of one time-stamp. */
type TimeStampAuthority = Pick<BoundedRequest, 'url' | 'timeoutMs'>;

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
