import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { AppError } from '#errors/app-error.ts';

/** Responses up to this size bypass the limit: the results of hundreds of inputs fit in. */
const SMALL_RESPONSE_BYTES = 64 * 1024;

/** Bytes of larger responses that may wait for their clients at once, however slowly these read. */
const RESPONSE_BUFFER_LIMIT_BYTES = 64 * 1024 * 1024;

/** The time after which the connection of a large response that its client does not read is closed. */
const RESPONSE_TIMEOUT_MS = 120_000;

/** Limits the memory of responses that clients request and do not read: a job of 10,000 inputs takes megabytes. */
export class ResponseBufferLimit {
  #heldBytes = 0;

  /**
   * Reserves memory for a response until its connection closes; false where the limit is reached. A single
   * response always fits.
   */
  tryReserve(response: ServerResponse, sizeBytes: number): boolean {
    if (sizeBytes <= SMALL_RESPONSE_BYTES) return true;
    if (this.#heldBytes > 0 && this.#heldBytes + sizeBytes > RESPONSE_BUFFER_LIMIT_BYTES) return false;
    this.#heldBytes += sizeBytes;
    const late = setTimeout(() => response.destroy(), RESPONSE_TIMEOUT_MS).unref();
    whenClosed(response, () => {
      clearTimeout(late);
      this.#heldBytes -= sizeBytes;
    });
    return true;
  }
}

/** Refuses responses beyond the limit with 503. Streams are not counted here: they are generated as they are read. */
export function limitResponseBuffers(app: FastifyInstance, limit: ResponseBufferLimit): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    const sizeBytes = typeof payload === 'string' ? Buffer.byteLength(payload) : 0;
    if (limit.tryReserve(reply.raw, sizeBytes)) done(null, payload);
    else done(new AppError('ANSWERS_TOO_LARGE_TOGETHER', {}));
  });
}

/** Returns the signal that is aborted when the client has its answer, or has hung up. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  whenClosed(reply.raw, () => gone.abort());
  return gone.signal;
}

/**
 * Calls a function when a response was sent or its client has hung up: at once where that was before, such as while the body
 * was checked.
 */
export function whenClosed(response: ServerResponse, closed: () => void): void {
  if (response.closed) closed();
  else response.once('close', closed);
}
