import type { IncomingMessage } from 'node:http';
import { finished, type Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '#errors/app-error.ts';
import { jsonProblem } from './json-problem.ts';

/** Bytes of all request bodies at once, whoever sends them and however slowly. */
const BODIES_LIMIT_BYTES = 64 * 1024 * 1024;

/** Bodies up to this size, hundreds of inputs, are received at the cost of any larger one. */
const SMALL_BODY_BYTES = 64 * 1024;

/** A body of which less than this arrives in a second is slow: others may take its memory. */
const MIN_BYTES_PER_SECOND = 64 * 1024;

/** A new body, or one that came fast, becomes slow after this time without bytes. */
const MAX_STALL_MS = 2000;

const leases = new WeakMap<IncomingMessage, BodyLease>();

/**
 * Bounds the memory that bodies take while they arrive, are checked and recorded. Each counts as it arrives, so a client
 * that sends nothing holds nothing. If the memory is used up, a body that still arrives is refused: the largest of the
 * slow ones, so that clients that send much and then stall keep nobody out; for a small body the largest of all; else
 * the one that asks. A single body always fits, whatever `server.max_upload_bytes` is.
 */
export class RequestBodyLimit {
  readonly #limitBytes: number;
  readonly #now: () => number;
  readonly #open = new Set<BodyLease>();

  /** `now`: milliseconds by a clock that never goes back. */
  constructor(maxBodyBytes: number, now: () => number = () => performance.now()) {
    this.#limitBytes = Math.max(BODIES_LIMIT_BYTES, maxBodyBytes);
    this.#now = now;
  }

  /** Bytes that are held just now. */
  get totalBytes(): number {
    return this.#totalBytes;
  }
  #totalBytes = 0;

  open(): BodyLease {
    const lease = new BodyLease({
      now: this.#now,
      grow: (sizeBytes) => this.#grow(lease, sizeBytes),
      release: () => {
        if (this.#open.delete(lease)) this.#totalBytes -= lease.sizeBytes;
      },
    });
    this.#open.add(lease);
    return lease;
  }

  #grow(lease: BodyLease, sizeBytes: number): void {
    // One that was released, as when the client hung up, is returned by nobody again.
    if (!this.#open.has(lease)) return;
    while (this.#totalBytes - lease.sizeBytes + sizeBytes > this.#limitBytes) {
      const refusal = new AppError('BODIES_TOO_LARGE_TOGETHER', {});
      const refused = this.#largestToRefuse(lease, sizeBytes);
      if (refused === null) throw refusal;
      refused.release();
      refused.refuse?.(refusal);
    }
    this.#totalBytes += sizeBytes - lease.sizeBytes;
    lease.sizeBytes = sizeBytes;
  }

  #largestToRefuse(asking: BodyLease, sizeBytes: number): BodyLease | null {
    const nowMs = this.#now();
    let largest: BodyLease | null = null;
    for (const lease of this.#open) {
      const mayBeRefused = lease.isSlow(nowMs) || (sizeBytes <= SMALL_BODY_BYTES && lease.sizeBytes > sizeBytes);
      if (lease === asking || lease.refuse === null || lease.sizeBytes === 0 || !mayBeRefused) continue;
      if (largest === null || lease.sizeBytes > largest.sizeBytes) largest = lease;
    }
    return largest;
  }
}

/** The memory of one body, and a token bucket that tells how fast the body arrives. */
class BodyLease {
  /** Counted just now. */
  sizeBytes = 0;
  /** Ends the receiving of the body; null where none is being received. */
  refuse: ((reason: AppError) => void) | null = null;
  /**
   * Reserves memory for the body. Throws `BODIES_TOO_LARGE_TOGETHER` where all bodies together would exceed the
   * limit, and none can be refused for it.
   */
  readonly grow: (sizeBytes: number) => void;
  /** Returns the memory. Safe to call again. */
  readonly release: () => void;
  readonly #now: () => number;
  /** Time from which the body is slow, unless more of it arrives. */
  #slowFromMs: number;

  constructor({ now, grow, release }: Pick<BodyLease, 'grow' | 'release'> & { readonly now: () => number }) {
    this.grow = grow;
    this.release = release;
    this.#now = now;
    this.#slowFromMs = now() + MAX_STALL_MS;
  }

  /** Notes that bytes have arrived. A slow body stays slow until it has made up for the last second. */
  arrived(bytes: number): void {
    const nowMs = this.#now();
    const earnedMs = (bytes / MIN_BYTES_PER_SECOND) * 1000;
    this.#slowFromMs = Math.min(Math.max(this.#slowFromMs, nowMs - 1000) + earnedMs, nowMs + MAX_STALL_MS);
  }

  /** Returns true where the body comes in too slowly. */
  isSlow(nowMs: number): boolean {
    return nowMs >= this.#slowFromMs;
  }
}

/** Opens a lease for every request that has a body, until its answer was sent, its client hung up, or `releaseBody`. */
export function limitBodies(app: FastifyInstance, limit: RequestBodyLimit): void {
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const { 'content-length': length, 'transfer-encoding': coding, 'content-type': type } = request.headers;
    if (length === undefined && coding === undefined && type === undefined) return done();
    leases.set(request.raw, limit.open());
    // Emitted when the answer was sent, and when the client hangs up before.
    reply.raw.once('close', () => releaseBody(request));
    done();
  });
}

/** Returns the lease of a request that has a body. */
function leaseOf({ raw }: FastifyRequest): BodyLease {
  const lease = leases.get(raw);
  if (lease === undefined) throw new Error('a body is received before its memory is counted');
  return lease;
}

/** Lets go of the body of a request that goes on without it, and of the memory it is counted with. */
export function releaseBody(request: FastifyRequest): void {
  request.body = undefined;
  leases.get(request.raw)?.release();
  leases.delete(request.raw);
}

/** The size of the first buffer of a body; it doubles as the body arrives. */
const MIN_BUFFER_BYTES = 4 * 1024;

/** The limits of a body and the lease that counts its memory. */
interface BodyBounds {
  /** The `Content-Length`; 0 where there is none. */
  readonly announcedBytes: number;
  readonly maxBytes: number;
  readonly lease: BodyLease;
}

/**
 * Receives a body into one buffer. However small the pieces are that it comes in, it takes at most twice its size
 * in memory: a client may send 8 MB byte by byte, and kept as pieces these would take gigabytes. Throws
 * BODY_TOO_LARGE, and BODIES_TOO_LARGE_TOGETHER; what is still to come is then read and discarded, so that the
 * client receives its answer.
 */
export async function receiveBody(payload: Readable, bounds: BodyBounds): Promise<Buffer> {
  const { announcedBytes, maxBytes, lease } = bounds;
  try {
    if (announcedBytes > maxBytes) throw new AppError('BODY_TOO_LARGE', { limitBytes: maxBytes });
    return await gather(payload, bounds);
  } catch (error) {
    lease.release();
    payload.resume();
    throw error;
  } finally {
    lease.refuse = null;
  }
}

function gather(payload: Readable, { announcedBytes, maxBytes, lease }: BodyBounds): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let body: Buffer = Buffer.alloc(0);
  let length = 0;
  const take = (piece: Buffer): void => {
    const neededBytes = length + piece.length;
    lease.arrived(piece.length);
    try {
      if (neededBytes > maxBytes) throw new AppError('BODY_TOO_LARGE', { limitBytes: maxBytes });
      if (neededBytes > body.length) body = enlarged(body, neededBytes, announcedBytes, lease);
    } catch (error) {
      return stop(error);
    }
    piece.copy(body, length);
    length = neededBytes;
  };
  const ignoreEnd = finished(payload, { writable: false }, (error) => {
    if (error) stop(error);
    else resolve(body.subarray(0, length));
  });
  const stop = (error: unknown): void => {
    // Not destroyed: that takes the connection along, and the answer with it.
    payload.off('data', take);
    ignoreEnd();
    body = Buffer.alloc(0);
    reject(error);
  };
  lease.refuse = stop;
  payload.on('data', take);
  return promise;
}

/** Counts what the next buffer takes before it is made. */
function enlarged(body: Buffer, neededBytes: number, announcedBytes: number, lease: BodyLease): Buffer {
  const doubled = Math.max(MIN_BUFFER_BYTES, neededBytes, body.length * 2);
  const sizeBytes = announcedBytes >= neededBytes ? Math.min(doubled, announcedBytes) : doubled;
  lease.grow(sizeBytes);
  const larger = Buffer.allocUnsafeSlow(sizeBytes);
  body.copy(larger);
  return larger;
}

/** Deeper bodies are refused before they are parsed. Assertions may be 100 deep, and lie a few levels down. */
const MAX_NESTING = 256;

/**
 * The least bytes of the largest body for each value in it, names and punctuation included; an input takes twice as
 * much. A body of nothing but `{}` would take a hundred times its size as objects, and hold the thread for seconds.
 */
const MIN_BYTES_PER_VALUE = 16;

/**
 * The parser keeps every name in a table of its own; half a million of them held the thread for up to a second, these
 * for 0.1 s.
 */
const MAX_NAMES = 100_000;

/**
 * Takes JSON bodies and nothing else, of at most `maxBodyBytes`. JSON is UTF-8 (RFC 8259 §8.1); bytes that are not would
 * become other characters in a path or an assertion, so they are refused instead of replaced.
 */
export function takeJsonBodies(app: FastifyInstance, maxBodyBytes: number): void {
  const maxValues = Math.ceil(maxBodyBytes / MIN_BYTES_PER_VALUE);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: Readable) => {
    const { 'content-encoding': coding, 'content-length': length = '0' } = request.headers;
    const bounds = { announcedBytes: Number(length), maxBytes: maxBodyBytes, lease: leaseOf(request) };
    const body = await receiveBody(payload, bounds);
    refuseEncoding(coding);
    return await parseJson(decodeUtf8(body), maxValues);
  });
}

/** Refuses compressed bodies: a small one could unfold to any size (415: RFC 9110 §15.5.16). */
function refuseEncoding(coding: string | undefined): void {
  const isPlain = coding === undefined || /^\s*(identity)?\s*$/i.test(coding);
  if (!isPlain) throw new AppError('BODY_ENCODING_UNSUPPORTED', {});
}

function decodeUtf8(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch (cause) {
    throw new AppError('REQUEST_NOT_JSON', { problem: 'it is not UTF-8' }, { cause });
  }
}

async function parseJson(body: string, maxValues: number): Promise<unknown> {
  if (body.trim() === '') throw new AppError('REQUEST_NOT_JSON', { problem: 'it is empty' });
  const problem = await jsonProblem(body, { maxNesting: MAX_NESTING, maxValues, maxNames: MAX_NAMES });
  if (problem !== null) throw new AppError('REQUEST_NOT_JSON', { problem });
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw new AppError('REQUEST_NOT_JSON', { problem: syntaxProblem(cause as SyntaxError) }, { cause });
  }
}

/** Describes a syntax error by its position; the engine's message may also quote the body, which may hold a presigned URL. */
function syntaxProblem({ message }: SyntaxError): string {
  const position = /\(line \d+ column \d+\)/.exec(message)?.[0];
  const token = /^Unexpected token '.{1,2}'/u.exec(message)?.[0];
  if (position !== undefined) return `it has a syntax error ${position}`;
  return token === undefined ? 'it ends too early or is not JSON at all' : `it has an ${token.toLowerCase()}`;
}
